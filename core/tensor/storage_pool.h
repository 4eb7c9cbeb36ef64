/* SPDX-License-Identifier: Apache-2.0 */
/* storage_pool.h - the memory of large tensors, recycled, and copies of it by two threads.
 *
 * A new page of the system costs several times a copy into it. So a freed block is kept for
 * the next caller, up to a limit, and returned to the system when it was idle for a while.
 * malloc recycles blocks below STORAGE_POOL_MIN well enough.
 *
 * Contents are undefined: a block keeps its former data. Any thread. */
#ifndef TENREC_TENSOR_STORAGE_POOL_H
#define TENREC_TENSOR_STORAGE_POOL_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <tenrec/error.h>

#define STORAGE_POOL_MIN ((size_t)512 << 10) /* bytes */
#define STORAGE_POOL_HUGE ((size_t)2 << 20)  /* bytes from which on huge pages are requested */
#define STORAGE_POOL_IDLE_MS 3000            /* after which an idle block is returned */
#define STORAGE_POOL_CLASSES 116

struct storage_kept;

struct storage_pool {
    pthread_mutex_t lock; /* guards all */
    size_t limit;         /* bytes that may be kept */
    size_t kept_bytes, kept_blocks;
    size_t used_bytes, used_blocks; /* allocated */
    uint64_t fresh, reused;         /* numbers of allocations */
    struct storage_kept *newest, *oldest;
    struct storage_kept *of_class[STORAGE_POOL_CLASSES]; /* newest first */
    void (*wake)(uint64_t deadline_ns); /* asks for storage_pool_trim then; may be NULL */
};

/* The pool of this process. Its limit is the sum over the running workers: without a worker
 * it keeps nothing. */
struct storage_pool *storage_pool_of_process(void);

/* Returns at least `bytes` bytes (STORAGE_POOL_MIN or more), aligned to a page, or NULL.
 * At most a quarter more is used: there are four block sizes between two powers of two.
 * *ret_class is for storage_pool_give. */
void *storage_pool_take(struct storage_pool *p, size_t bytes, unsigned *ret_class);
void storage_pool_give(struct storage_pool *p, void *data, unsigned class);

/* Bytes of a block of that class, and of the block for `bytes` bytes. */
size_t storage_pool_bytes(unsigned class);
size_t storage_pool_round(size_t bytes);

/* Raise or lower the limit of kept bytes. */
void storage_pool_allow(struct storage_pool *p, size_t more);
void storage_pool_deny(struct storage_pool *p, size_t less);

/* Returns blocks that are idle since STORAGE_POOL_IDLE_MS before `now_ns` to the system.
 * Returns the time of the next run; CLOCK_NEVER: nothing is kept. */
uint64_t storage_pool_trim(struct storage_pool *p, uint64_t now_ns);

/* A snapshot. */
struct storage_counts {
    size_t limit, kept_bytes, kept_blocks, used_bytes, used_blocks;
    uint64_t fresh, reused;
};
struct storage_counts storage_pool_count(struct storage_pool *p);

/* Copies of large memory by two threads.
 *
 * One processor copies uncached data at about half the memory's bandwidth. The second
 * thread is started by the first large copy and sleeps between copies. */

struct parallel_copy;

/* Starts no thread yet. errors: ENOMEM */
tenrec_status parallel_copy_open(struct parallel_copy **ret, tenrec_error *err);

/* Ends the second thread; no copy may be running. NULL is fine. */
void parallel_copy_close(struct parallel_copy *c);

/* memcpy, from any thread. Copies alone if the memory is small, with one processor,
 * without a second thread, and while that helps another caller. Waits for the second
 * thread at most for a piece of 64 KiB. */
void parallel_copy_run(struct parallel_copy *c, void *to, const void *from, size_t bytes);

#endif
