/* SPDX-License-Identifier: Apache-2.0 */
#include "core/tensor/shared_memory.h"

#include "core/base/clock.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/tensor/range_alloc.h"
#include "core/tensor/sharing.h"
#include "core/tensor/storage_pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define COMMON_BYTES ((size_t)64 << 20) /* of a region that several blocks share */
#define COMMON_MAX ((size_t)16 << 20)   /* larger blocks have their own */
#define COMMON_BLOCKS 1024              /* blocks of a region, at most: keeps the search short */
#define IDLE_NS (STORAGE_POOL_IDLE_MS * UINT64_C(1000000))

struct shared_region {
    struct shared_region *next;
    struct memfd_region region;
    struct range_alloc used;
    uint64_t serial;
    uint64_t idle_ns; /* when a block was freed last */
    bool own;         /* of one block */
    bool private;     /* all blocks in it are PRIVATE */
    bool dirty;       /* free parts may have pages */
    bool leaves;      /* dropped with its block */
};

struct shared_block {
    struct shared_region *region;
    size_t offset, bytes;
    bool private;
    atomic_size_t count; /* never 0 -> 1: the lock is held to find a block and to drop the last */
    atomic_int way;      /* enum shared_way of the next message */
};

static struct {
    pthread_mutex_t lock; /* guards all but `some` */
    struct shared_region *first;
    size_t blocks;
    size_t empty_bytes; /* of regions without a block */
    size_t private_bytes;
    uint64_t serials;
    atomic_size_t some; /* regions; read without the lock */
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- fork ------------------------------------------------------------------ */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_uint forks; /* counted before and after a fork */

static void before_fork(void)
{
    atomic_fetch_add(&forks, 1);
    pthread_mutex_lock(&all.lock);
}

static void after_fork(void)
{
    atomic_fetch_add(&forks, 1);
    pthread_mutex_unlock(&all.lock);
}

/* The memory belongs to the parent: the child reuses, frees and lends none of it. */
static void in_child(void)
{
    for (struct shared_region *r = all.first; r; r = r->next)
        r->region.base = NULL;
    all.first = NULL;
    all.blocks = all.empty_bytes = all.private_bytes = 0;
    atomic_store(&all.some, 0);
    after_fork();
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, in_child);
}

unsigned shared_memory_forks(void)
{
    pthread_once(&once, watch_forks);
    return atomic_load(&forks);
}

/* ---- regions ---------------------------------------------------------------- */

/* The caller holds the lock. */
static void unlink_region(struct shared_region *r)
{
    struct shared_region **at;

    for (at = &all.first; *at != r; at = &(*at)->next)
        ;
    *at = r->next;
    atomic_fetch_sub(&all.some, 1);
}

/* Frees the pages for peers that still have the region mapped, too, unless it was moved to one. */
static void region_drop(struct shared_region *r)
{
    if (!r->leaves)
        memfd_region_discard(&r->region, 0, r->region.bytes);
    memfd_region_close(&r->region);
    range_alloc_finish(&r->used);
    free(r);
}

static struct shared_region *region_new(struct memfd_region *region, bool own)
{
    struct shared_region *r = memory_new(1, sizeof *r);

    if (!r)
        return NULL;
    pthread_once(&once, watch_forks);
    r->region = *region;
    r->used.length = region->bytes;
    r->own = own;
    return r;
}

/* ---- blocks ----------------------------------------------------------------- */

/* Puts `b` into `r`. Returns false without room. The caller holds the lock. */
static bool shared_memory_allocate(struct shared_region *r, struct shared_block *b, size_t bytes)
{
    const bool was_empty = r->used.n == 0;

    if (r->used.n >= COMMON_BLOCKS || !range_alloc_take(&r->used, bytes, b, &b->offset))
        return false;
    b->region = r;
    b->bytes = bytes;
    all.blocks++;
    if (b->private)
        all.private_bytes += bytes;
    if (was_empty && r->dirty)
        all.empty_bytes -= r->region.bytes;
    return true;
}

/* Finds room in an existing region. The caller holds the lock. */
static bool find_room(struct shared_block *b, size_t bytes)
{
    const bool own = bytes > COMMON_MAX;

    for (struct shared_region *r = all.first; r; r = r->next) {
        if (r->own != own || r->private != b->private || r->leaves)
            continue;
        if (own && (r->used.n > 0 || r->region.bytes < bytes || r->region.bytes / 5 * 4 > bytes))
            continue;
        if (shared_memory_allocate(r, b, bytes))
            return true;
    }
    return false;
}

/* Begins a region with `b`, or frees it. */
static tenrec_status region_begin(struct shared_region *r, struct shared_block *b, size_t bytes,
                                  tenrec_error *err)
{
    bool placed;

    pthread_mutex_lock(&all.lock);
    placed = shared_memory_allocate(r, b, bytes);
    if (placed) {
        r->serial = ++all.serials;
        r->next = all.first;
        all.first = r;
        atomic_fetch_add(&all.some, 1);
    }
    pthread_mutex_unlock(&all.lock);
    if (placed)
        return TENREC_OK;
    region_drop(r);
    return tenrec_fail(err, TENREC_ENOMEM, "no memory for a tensor");
}

static tenrec_status make_room(struct shared_block *b, size_t bytes, bool moves, tenrec_error *err)
{
    const bool own = moves || bytes > COMMON_MAX;
    size_t length = !own ? COMMON_BYTES : moves ? bytes : storage_pool_round(bytes);
    struct shared_region *r;
    struct memfd_region region;
    tenrec_status st = memfd_region_make(length, moves ? REGION_WRITE : REGION_READ, &region, err);

    if (st != TENREC_OK)
        return st;
    r = region_new(&region, own);
    if (!r) {
        memfd_region_close(&region);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a tensor");
    }
    r->private = b->private;
    return region_begin(r, b, bytes, err);
}

static struct shared_block *block_new(enum shared_way way)
{
    struct shared_block *b = memory_new(1, sizeof *b);

    if (b) {
        atomic_init(&b->count, 1);
        atomic_init(&b->way, way);
        b->private = way == SHARED_PRIVATE;
    }
    return b;
}

tenrec_status shared_block_new(size_t bytes, enum shared_way way, struct shared_block **ret,
                               tenrec_error *err)
{
    const size_t grain = memfd_region_page();
    const bool moves = way == SHARED_MOVED;
    struct shared_block *b = block_new(way);
    tenrec_status st = TENREC_OK;
    bool found = false;

    if (!b || bytes > PTRDIFF_MAX - grain) {
        free(b);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a tensor of %zu bytes", bytes);
    }
    bytes = (bytes + grain - 1) / grain * grain;
    if (!moves) {
        pthread_mutex_lock(&all.lock);
        found = find_room(b, bytes);
        pthread_mutex_unlock(&all.lock);
    }
    if (!found)
        st = make_room(b, bytes, moves, err);
    if (st == TENREC_OK)
        *ret = b;
    else
        free(b);
    return st;
}

tenrec_status shared_block_adopt(struct memfd_region *region, struct shared_block **ret,
                                 tenrec_error *err)
{
    struct shared_block *b = block_new(SHARED_LENT);
    struct shared_region *r = b ? region_new(region, true) : NULL;
    tenrec_status st;

    if (!r) {
        memfd_region_close(region);
        free(b);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a tensor");
    }
    r->leaves = true; /* other processes may have it mapped writable */
    memfd_region_restrict(&r->region);
    st = region_begin(r, b, region->bytes, err);
    if (st == TENREC_OK)
        *ret = b;
    else
        free(b);
    return st;
}

/* Frees the memory of `b`; returns the region if that must be dropped, too. The caller holds the
 * lock. */
static struct shared_region *shared_memory_free(struct shared_block *b, size_t limit, uint64_t now)
{
    struct shared_region *r = b->region;

    range_alloc_give(&r->used, b->offset);
    all.blocks--;
    if (b->private)
        all.private_bytes -= b->bytes;
    r->idle_ns = now;
    r->dirty = true;
    if (r->used.n > 0)
        return NULL;
    if (r->leaves || all.empty_bytes + r->region.bytes > limit) {
        unlink_region(r);
        return r;
    }
    all.empty_bytes += r->region.bytes;
    return NULL;
}

void shared_block_drop(struct shared_block *b)
{
    struct shared_region *gone;
    size_t limit;
    uint64_t now;
    bool last;

    /* Only the last reference needs the lock, as shared_block_at might share the block. */
    for (size_t n = b ? atomic_load(&b->count) : 0; n > 1;)
        if (atomic_compare_exchange_weak(&b->count, &n, n - 1))
            return;
    if (!b)
        return;
    limit = storage_pool_count(storage_pool_of_process()).limit;
    now = clock_now_ns();
    pthread_mutex_lock(&all.lock);
    last = atomic_fetch_sub(&b->count, 1) == 1;
    if (last && !b->region->region.base) { /* a parent's */
        pthread_mutex_unlock(&all.lock);
        return;
    }
    gone = last ? shared_memory_free(b, limit, now) : NULL;
    pthread_mutex_unlock(&all.lock);
    if (!last)
        return;
    free(b);
    if (gone)
        region_drop(gone);
    else
        housekeeping_at(shared_memory_trim, now + IDLE_NS);
}

void *shared_block_data(const struct shared_block *b)
{
    return b->region->region.base + b->offset;
}

bool shared_memory_is_there(void)
{
    return atomic_load_explicit(&all.some, memory_order_relaxed) > 0;
}

struct shared_block *shared_block_at(const void *data, uint64_t bytes)
{
    struct shared_block *b = NULL;

    if (!shared_memory_is_there())
        return NULL;
    pthread_mutex_lock(&all.lock);
    for (struct shared_region *r = all.first; r; r = r->next) {
        const uintptr_t at = (uintptr_t)data - (uintptr_t)r->region.base;
        if (at >= r->region.bytes)
            continue;
        b = bytes <= SIZE_MAX ? range_alloc_owner(&r->used, at, (size_t)bytes) : NULL;
        if (b)
            atomic_fetch_add(&b->count, 1);
        break;
    }
    pthread_mutex_unlock(&all.lock);
    return b;
}

bool shared_block_has(const struct shared_block *b, const void *data, uint64_t bytes)
{
    const uintptr_t at = (uintptr_t)data - (uintptr_t)shared_block_data(b);

    return at < b->bytes && bytes <= b->bytes - at;
}

void shared_block_share(struct shared_block *b)
{
    /* Relaxed: the caller knows of a holder. */
    atomic_fetch_add_explicit(&b->count, 1, memory_order_relaxed);
}

int shared_block_fd(const struct shared_block *b)
{
    return b->region->region.fd;
}

uint64_t shared_block_region(const struct shared_block *b)
{
    return b->region->serial;
}

uint64_t shared_block_offset(const struct shared_block *b, const void *data)
{
    return (uint64_t)((const char *)data - b->region->region.base);
}

enum shared_way shared_block_way(struct shared_block *b)
{
    int way = atomic_load(&b->way);

    if (way == SHARED_LENT)
        return SHARED_LENT;
    way = atomic_exchange(&b->way, SHARED_COPIED);
    if (way == SHARED_MOVED) {
        pthread_mutex_lock(&all.lock);
        b->region->leaves = true;
        pthread_mutex_unlock(&all.lock);
    }
    return (enum shared_way)way;
}

void shared_block_stay(struct shared_block *b, enum shared_way way)
{
    atomic_store(&b->way, way);
}

struct shared_counts shared_memory_count(void)
{
    struct shared_counts c = { 0 };

    pthread_mutex_lock(&all.lock);
    c.blocks = all.blocks;
    c.private_bytes = all.private_bytes;
    for (struct shared_region *r = all.first; r; r = r->next) {
        c.regions++;
        c.bytes += r->region.bytes;
    }
    pthread_mutex_unlock(&all.lock);
    return c;
}

/* ---- freeing ------------------------------------------------------------------ */

static void discard_gaps(struct shared_region *r)
{
    size_t at = 0, len;

    while ((len = range_alloc_gap(&r->used, &at)) > 0) {
        memfd_region_discard(&r->region, at, len);
        at += len;
    }
    r->dirty = false;
}

static void drop_all(struct shared_region *gone)
{
    while (gone) {
        struct shared_region *r = gone;
        gone = r->next;
        region_drop(r);
    }
}

/* Moves an empty region from the list, *at, to another. The caller holds the lock. */
static void region_move(struct shared_region **at, struct shared_region **to)
{
    struct shared_region *r = *at;

    all.empty_bytes -= r->region.bytes;
    *at = r->next;
    atomic_fetch_sub(&all.some, 1);
    r->next = *to;
    *to = r;
}

void shared_memory_shrink(void)
{
    const size_t limit = storage_pool_count(storage_pool_of_process()).limit;
    struct shared_region *gone = NULL, **at;

    pthread_mutex_lock(&all.lock);
    for (at = &all.first; *at && all.empty_bytes > limit;) {
        if ((*at)->used.n == 0)
            region_move(at, &gone);
        else
            at = &(*at)->next;
    }
    pthread_mutex_unlock(&all.lock);
    drop_all(gone);
}

uint64_t shared_memory_trim(uint64_t now_ns)
{
    struct shared_region *gone = NULL, **at;
    uint64_t next = CLOCK_NEVER;

    pthread_mutex_lock(&all.lock);
    for (at = &all.first; *at;) {
        struct shared_region *r = *at;
        if (!r->dirty) {
            at = &r->next;
        } else if (r->idle_ns + IDLE_NS > now_ns) {
            if (r->idle_ns + IDLE_NS < next)
                next = r->idle_ns + IDLE_NS;
            at = &r->next;
        } else if (r->used.n > 0) {
            discard_gaps(r);
            at = &r->next;
        } else {
            region_move(at, &gone);
        }
    }
    pthread_mutex_unlock(&all.lock);
    drop_all(gone);
    return next;
}
