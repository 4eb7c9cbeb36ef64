/* SPDX-License-Identifier: Apache-2.0 */
/* storage_pool.h - the memory of large tensors, used again.
 *
 * A page that the system gives out for the first time costs several times what
 * it costs to copy into it. So a block that is given back is kept for whoever
 * asks next, up to a limit, and goes to the system when nobody wanted it for a
 * while. Smaller ones than STORAGE_POOL_MIN malloc keeps well enough.
 *
 * Contents are undefined: a block brings what it held before. Any thread. */
#ifndef TENREC_SHM_STORAGE_POOL_H
#define TENREC_SHM_STORAGE_POOL_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define STORAGE_POOL_MIN ((size_t)512 << 10) /* bytes */
#define STORAGE_POOL_HUGE                                                                          \
    ((size_t)2 << 20)             /* from here on in huge pages, where the system has some */
#define STORAGE_POOL_IDLE_MS 3000 /* so long a block waits for its next use */
#define STORAGE_POOL_CLASSES 116

struct storage_kept;

struct storage_pool {
    pthread_mutex_t lock; /* guards all */
    size_t limit;         /* bytes that may be kept */
    size_t kept_bytes, kept_blocks;
    size_t used_bytes, used_blocks; /* given out */
    uint64_t fresh, reused;         /* how often */
    struct storage_kept *newest, *oldest;
    struct storage_kept *of_class[STORAGE_POOL_CLASSES]; /* newest first */
    void (*wake)(uint64_t deadline_ns); /* something is kept: trim it then; may be NULL */
};

#define STORAGE_POOL_INIT                                                                          \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER                                                          \
    }

/* The one of this process. Its limit is what the workers that run allow, all
 * together: without any it keeps nothing. */
struct storage_pool *storage_pool_of_process(void);

/* At least `bytes` bytes (STORAGE_POOL_MIN or more), aligned to a page, or NULL.
 * At most a quarter more is used: blocks come in four sizes between two powers
 * of two. *ret_class is what storage_pool_give wants to know. */
void *storage_pool_take(struct storage_pool *p, size_t bytes, unsigned *ret_class);
void storage_pool_give(struct storage_pool *p, void *data, unsigned class);

/* Bytes of a block of that class, and of the block that `bytes` bytes get. */
size_t storage_pool_bytes(unsigned class);
size_t storage_pool_round(size_t bytes);

/* So many bytes more, or less, may be kept. */
void storage_pool_allow(struct storage_pool *p, size_t more);
void storage_pool_deny(struct storage_pool *p, size_t less);

/* Gives the system what was not used since STORAGE_POOL_IDLE_MS before `now_ns`.
 * Returns when there may be more to do; CLOCK_NEVER: nothing is kept. */
uint64_t storage_pool_trim(struct storage_pool *p, uint64_t now_ns);

/* As it is at one moment. */
struct storage_counts {
    size_t limit, kept_bytes, kept_blocks, used_bytes, used_blocks;
    uint64_t fresh, reused;
};
struct storage_counts storage_pool_count(struct storage_pool *p);

#endif
