/* SPDX-License-Identifier: Apache-2.0 */
/* pool.h - the threads that run functions.
 *
 * Threads are started with the work, and exit after a second without. Meanwhile one of them may
 * read the messages. A thread that blocks in a
 * Tenrec wait does not count: another thread replaces it, so nested calls complete even with one
 * configured thread. Nor do threads count that all block elsewhere while tasks wait (stall.h), up
 * to seven times max_threads if that is above one. Where that fails, as the system permits no more
 * threads or max_threads + max_queued exist, no task stays queued behind threads that all block: it
 * is refused. */
#ifndef TENREC_FUTURE_POOL_H
#define TENREC_FUTURE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <tenrec/agent.h>

struct pool;

/* First field of a queued object. */
struct pool_task {
    struct pool_task *next;
    void (*fn)(struct pool_task *t);
    uint64_t bytes; /* held while it is queued, and until `fn` has returned */
    bool refused;   /* fn is to end the task without running it, with pool_refusal */
};

/* max_threads  that run at once
 * max_queued   limit from which pool_full returns true; drained() is called when the queue is half
 *              empty again */
tenrec_status pool_open(unsigned max_threads, size_t max_queued, void (*drained)(void *arg),
                        void *arg, struct pool **ret, tenrec_error *err);

/* The bytes of all tasks from which pool_full returns true while tasks wait for a thread; without a
 * call there is no limit. Not while there are only running tasks: those that wait for another call
 * would keep that out. */
void pool_limit_bytes(struct pool *p, uint64_t max_bytes);

struct pool_limits {
    size_t queued;
    uint64_t bytes;
};
struct pool_limits pool_limits(struct pool *p);

/* Queues a task. If no thread can be started now, a thread of the pool runs the task later.
 * errors: EOS (the pool has no thread and cannot start one), EAGAIN (all its threads block, and it
 * cannot start one), ESHUTDOWN (pool_stop): the task was not queued */
tenrec_status pool_run(struct pool *p, struct pool_task *t);

/* Writes the EAGAIN of a task that was refused. */
tenrec_status pool_refusal(struct pool *p, const char *function, tenrec_error *err);

/* Lets a thread without work lead the loop that reads messages: `lead` as the op of an agent,
 * called with no lock held, from one thread at a time. The leader runs the first task that it reads
 * itself, so that no other thread is woken for it. The first failure of `lead` (EUNSUPPORTED) ends
 * that. NULL ends it, too, and waits until no thread leads; not from a thread of the pool. */
typedef tenrec_status pool_lead_fn(void *arg, const struct tenrec_wait *wait);
void pool_lead_by(struct pool *p, pool_lead_fn *lead, void *arg);

/* From now on no thread begins a task: returns the queued tasks, in order, and refuses others until
 * pool_resume. Running tasks continue. */
struct pool_task *pool_stop(struct pool *p);
void pool_resume(struct pool *p);

bool pool_full(const struct pool *p);

struct pool_counts {
    unsigned threads, idle, blocked; /* the leader is idle */
    size_t queued;
};
struct pool_counts pool_count(struct pool *p);

/* Runs the queued tasks, waits until every thread has exited, frees. Not from a pool thread. */
void pool_close(struct pool *p);

#endif
