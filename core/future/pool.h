/* SPDX-License-Identifier: Apache-2.0 */
/* pool.h - the threads that run functions.
 *
 * Threads come with the work and go when there was none for a second. A thread
 * that blocks in a Tenrec wait does not count: another one takes its place
 * (bounded), so nested calls end with one configured thread. */
#ifndef TENREC_FUTURE_POOL_H
#define TENREC_FUTURE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <tenrec/error.h>

struct pool;

/* Embedded in what is queued. */
struct pool_task {
    struct pool_task *next;
    void (*fn)(struct pool_task *t);
};

/* max_threads  that run at once
 * max_queued   beyond it pool_full says true; drained() is called when the
 *              queue is half empty again */
tenrec_status pool_open(unsigned max_threads, size_t max_queued, void (*drained)(void *arg),
                        void *arg, struct pool **ret, tenrec_error *err);

/* Queues a task. When no thread can be made now, one of the pool's threads runs it later.
 * errors: EOS (no thread at all could be started), ESHUTDOWN (pool_stop): the task was not
 * taken */
tenrec_status pool_run(struct pool *p, struct pool_task *t);

/* From now on no thread begins a task: returns the queued ones, in their order, and refuses
 * others until pool_resume. Tasks that run go on. */
struct pool_task *pool_stop(struct pool *p);
void pool_resume(struct pool *p);

bool pool_full(const struct pool *p);

/* Around a wait of a pool thread. */
void pool_block_begin(struct pool *p);
void pool_block_end(struct pool *p);

struct pool_counts {
    unsigned threads, idle, blocked;
    size_t queued;
};
struct pool_counts pool_count(struct pool *p);

/* Runs what is queued, waits until every thread has ended, frees. Not from a
 * pool thread. */
void pool_close(struct pool *p);

#endif
