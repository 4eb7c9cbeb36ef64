/* SPDX-License-Identifier: Apache-2.0 */
#include "core/tensor/storage_pool.h"

#include "core/base/clock.h"
#include "core/base/forks.h"
#include "core/base/loop.h"
#include "core/base/recycle.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#define ALIGNMENT 64 /* of a block that is not recycled; as other tensors' */
#define MIN_SHIFT 19 /* STORAGE_POOL_MIN is 1 << 19 */

/* The beginning of a kept block. */
struct storage_kept {
    struct storage_kept *newer, *older;             /* of all kept blocks */
    struct storage_kept *class_newer, *class_older; /* of its class */
    uint64_t since_ns;
    unsigned class;
};

/* ---- sizes ---------------------------------------------------------------- */

size_t storage_pool_bytes(unsigned class)
{
    return (STORAGE_POOL_MIN / 4 * (4 + class % 4)) << class / 4;
}

/* The smallest class of at least `bytes` bytes; STORAGE_POOL_CLASSES: none. */
static unsigned class_for(size_t bytes)
{
    unsigned shift, class;

    if (bytes <= STORAGE_POOL_MIN)
        return 0;
    shift = 63 - (unsigned)__builtin_clzll((unsigned long long)bytes);
    class = (shift - MIN_SHIFT) * 4 + (unsigned)(bytes >> (shift - 2) & 3);
    if (class >= STORAGE_POOL_CLASSES)
        return STORAGE_POOL_CLASSES;
    return storage_pool_bytes(class) < bytes ? class + 1 : class;
}

size_t storage_pool_round(size_t bytes)
{
    const unsigned class = class_for(bytes);

    return class < STORAGE_POOL_CLASSES ? storage_pool_bytes(class) : bytes;
}

/* ---- pages ---------------------------------------------------------------- */

static void *storage_pool_map(size_t bytes)
{
    const size_t extra = bytes >= STORAGE_POOL_HUGE ? STORAGE_POOL_HUGE : 0;
    size_t before;
    char *p = mmap(NULL, bytes + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return NULL;
    if (!extra)
        return p;
    /* A huge page is aligned to its size. */
    before = (size_t)(-(uintptr_t)p & (STORAGE_POOL_HUGE - 1));
    if (before)
        munmap(p, before);
    if (extra - before)
        munmap(p + before + bytes, extra - before);
    madvise(p + before, bytes, MADV_HUGEPAGE); /* a hint: failure is harmless */
    return p + before;
}

static void *storage_pool_make(unsigned class, size_t bytes)
{
    if (RECYCLE)
        return storage_pool_map(storage_pool_bytes(class));
    /* The exact size, so that AddressSanitizer and valgrind find accesses beyond it. */
    return aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

static void storage_pool_unmake(void *data, unsigned class)
{
    if (RECYCLE)
        munmap(data, storage_pool_bytes(class));
    else
        free(data);
}

/* ---- kept blocks ---------------------------------------------------------- */

static void storage_pool_put(struct storage_pool *p, struct storage_kept *k)
{
    struct storage_kept **of_class = &p->of_class[k->class];

    k->newer = NULL;
    k->older = p->newest;
    *(p->newest ? &p->newest->newer : &p->oldest) = k;
    p->newest = k;
    k->class_newer = NULL;
    k->class_older = *of_class;
    if (*of_class)
        (*of_class)->class_newer = k;
    *of_class = k;
    p->kept_blocks++;
    p->kept_bytes += storage_pool_bytes(k->class);
}

static void storage_pool_unlink(struct storage_pool *p, struct storage_kept *k)
{
    *(k->newer ? &k->newer->older : &p->newest) = k->older;
    *(k->older ? &k->older->newer : &p->oldest) = k->newer;
    *(k->class_newer ? &k->class_newer->class_older : &p->of_class[k->class]) = k->class_older;
    if (k->class_older)
        k->class_older->class_newer = k->class_newer;
    p->kept_blocks--;
    p->kept_bytes -= storage_pool_bytes(k->class);
}

/* Removes blocks beyond the limit and old ones; returns them as a list by `older`, for
 * unmap_all without the lock. */
static struct storage_kept *storage_pool_excess(struct storage_pool *p, uint64_t since_ns)
{
    struct storage_kept *list = NULL;

    while (p->oldest && (p->kept_bytes > p->limit || p->oldest->since_ns <= since_ns)) {
        struct storage_kept *k = p->oldest;
        storage_pool_unlink(p, k);
        k->older = list;
        list = k;
    }
    return list;
}

static void unmap_all(struct storage_kept *list)
{
    while (list) {
        struct storage_kept *k = list;
        list = k->older;
        storage_pool_unmake(k, k->class);
    }
}

/* ---- the pool ------------------------------------------------------------- */

void *storage_pool_take(struct storage_pool *p, size_t bytes, unsigned *ret_class)
{
    const unsigned class = class_for(bytes);
    struct storage_kept *k;
    void *data;

    if (class >= STORAGE_POOL_CLASSES)
        return NULL;
    pthread_mutex_lock(&p->lock);
    k = p->of_class[class];
    if (k) {
        storage_pool_unlink(p, k);
        p->reused++;
    } else {
        p->fresh++;
    }
    p->used_blocks++;
    p->used_bytes += storage_pool_bytes(class);
    pthread_mutex_unlock(&p->lock);
    data = k ? k : storage_pool_make(class, bytes);
    if (!data) {
        pthread_mutex_lock(&p->lock);
        p->fresh--;
        p->used_blocks--;
        p->used_bytes -= storage_pool_bytes(class);
        pthread_mutex_unlock(&p->lock);
    }
    *ret_class = class;
    return data;
}

void storage_pool_give(struct storage_pool *p, void *data, unsigned class)
{
    struct storage_kept *k = data, *out = NULL;
    const uint64_t now = clock_now_ns();
    uint64_t wake_ns = CLOCK_NEVER;
    bool keep;

    pthread_mutex_lock(&p->lock);
    p->used_blocks--;
    p->used_bytes -= storage_pool_bytes(class);
    keep = RECYCLE && storage_pool_bytes(class) <= p->limit;
    if (keep) {
        k->class = class;
        k->since_ns = now;
        if (!p->oldest)
            wake_ns = now + STORAGE_POOL_IDLE_MS * UINT64_C(1000000);
        storage_pool_put(p, k);
        out = storage_pool_excess(p, 0);
    }
    pthread_mutex_unlock(&p->lock);
    if (!keep)
        storage_pool_unmake(data, class);
    unmap_all(out);
    if (wake_ns != CLOCK_NEVER && p->wake)
        p->wake(wake_ns);
}

void storage_pool_allow(struct storage_pool *p, size_t more)
{
    pthread_mutex_lock(&p->lock);
    p->limit += more;
    pthread_mutex_unlock(&p->lock);
}

void storage_pool_deny(struct storage_pool *p, size_t less)
{
    struct storage_kept *out;

    pthread_mutex_lock(&p->lock);
    p->limit -= less;
    out = storage_pool_excess(p, 0);
    pthread_mutex_unlock(&p->lock);
    unmap_all(out);
}

uint64_t storage_pool_trim(struct storage_pool *p, uint64_t now_ns)
{
    const uint64_t idle_ns = STORAGE_POOL_IDLE_MS * UINT64_C(1000000);
    struct storage_kept *out;
    uint64_t next;

    pthread_mutex_lock(&p->lock);
    out = storage_pool_excess(p, now_ns > idle_ns ? now_ns - idle_ns : 0);
    next = p->oldest ? p->oldest->since_ns + idle_ns : CLOCK_NEVER;
    pthread_mutex_unlock(&p->lock);
    unmap_all(out);
    return next;
}

struct storage_counts storage_pool_count(struct storage_pool *p)
{
    struct storage_counts c;

    pthread_mutex_lock(&p->lock);
    c = (struct storage_counts){ p->limit,       p->kept_bytes, p->kept_blocks, p->used_bytes,
                                 p->used_blocks, p->fresh,      p->reused };
    pthread_mutex_unlock(&p->lock);
    return c;
}

/* ---- of the process ------------------------------------------------------- */

static uint64_t trim_process(uint64_t now_ns)
{
    return storage_pool_trim(storage_pool_of_process(), now_ns);
}

static void wake_process(uint64_t deadline_ns)
{
    housekeeping_at(trim_process, deadline_ns);
}

static struct storage_pool of_process = { .lock = PTHREAD_MUTEX_INITIALIZER, .wake = wake_process };

/* In the child of a fork: another thread of the parent may have been changing the pool, and the
 * workers that set its limit do not run here. */
static void storage_pool_after_fork(void)
{
    of_process = (struct storage_pool){ .lock = PTHREAD_MUTEX_INITIALIZER, .wake = wake_process };
}

static struct fork_hook fork_hook = { .child = storage_pool_after_fork };

struct storage_pool *storage_pool_of_process(void)
{
    forks_follow(&fork_hook);
    return &of_process;
}
