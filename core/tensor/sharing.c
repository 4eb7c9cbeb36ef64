/* SPDX-License-Identifier: Apache-2.0 */
/* sharing.c - lending memory to the peer of a connection. */
#include "core/tensor/sharing.h"

#include "core/backend/backend.h"
#include "core/base/clock.h"
#include "core/base/forks.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/tensor/shared_memory.h"
#include "core/tensor/sharing_inside.h"

#include <endian.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The pauses between two polls for ended loans while no thread asks for memory; they
 * double while no loan ends. */
#define COLLECT_MIN_NS UINT64_C(1000000000)
#define COLLECT_MAX_NS UINT64_C(60000000000)

#define COLLECT_FROM 64 /* loans of a connection that are reclaimed with the next loan */

/* All connections of the process; closed ones until their last loan ended. The lock is
 * acquired before the lock of a connection. */
static struct {
    pthread_mutex_t lock;
    struct tenrec_sharing *first;
    uint64_t pause_ns;
    atomic_size_t lent; /* blocks, by all connections */
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* In the child of a fork, which has lent nothing to the peers. */
static void in_child(void)
{
    pthread_mutex_init(&all.lock, NULL);
    all.first = NULL;
    atomic_store(&all.lent, 0);
}

static struct fork_hook fork_hook = { .child = in_child };

struct tenrec_sharing *sharing_open(void)
{
    struct tenrec_sharing *s = memory_new(1, sizeof *s);

    if (!s)
        return NULL;
    forks_follow(&fork_hook);
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_lock(&all.lock);
    s->next = all.first;
    all.first = s;
    pthread_mutex_unlock(&all.lock);
    return s;
}

/* ---- reclaiming -------------------------------------------------------------- */

/* The caller holds the lock. */
static void sharing_return(struct tenrec_sharing *s, unsigned slot)
{
    struct shared_block *b = s->lent[slot];

    if (!b) /* the peer ended a loan that it does not have: ignored */
        return;
    s->lent[slot] = NULL;
    s->n_lent--;
    atomic_fetch_sub(&all.lent, 1);
    shared_block_drop(b);
}

/* The caller holds the lock. */
static void sharing_reclaim(struct tenrec_sharing *s)
{
    for (unsigned w = 0; w < RELEASE_PAGE_WORDS && s->n_lent > 0; w++) {
        uint64_t ended = release_page_ended(&s->release_page, w);
        if (s->closed)
            ended |= ~release_page_held(&s->release_page, w);
        for (; ended; ended &= ended - 1)
            sharing_return(s, w * 64 + (unsigned)__builtin_ctzll(ended));
    }
    if (s->closed && s->n_lent > 0 && release_page_holder_is_gone(&s->release_page))
        for (unsigned slot = 0; slot < RELEASE_PAGE_SLOTS; slot++)
            sharing_return(s, slot);
}

static void sharing_free(struct tenrec_sharing *s)
{
    release_page_close(&s->release_page);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

uint64_t sharing_collect(uint64_t now_ns)
{
    struct tenrec_sharing *done = NULL, **at;
    const size_t before = atomic_load(&all.lent);
    uint64_t next = CLOCK_NEVER;

    if (before == 0)
        return CLOCK_NEVER;
    pthread_mutex_lock(&all.lock);
    for (at = &all.first; *at;) {
        struct tenrec_sharing *s = *at;
        bool over;
        pthread_mutex_lock(&s->lock);
        sharing_reclaim(s);
        over = s->closed && s->n_lent == 0;
        pthread_mutex_unlock(&s->lock);
        if (!over) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        s->next = done;
        done = s;
    }
    if (atomic_load(&all.lent) > 0) {
        all.pause_ns = atomic_load(&all.lent) < before ? COLLECT_MIN_NS : all.pause_ns * 2;
        if (all.pause_ns > COLLECT_MAX_NS)
            all.pause_ns = COLLECT_MAX_NS;
        next = now_ns + all.pause_ns;
    }
    pthread_mutex_unlock(&all.lock);
    while (done) {
        struct tenrec_sharing *s = done;
        done = s->next;
        sharing_free(s);
    }
    return next;
}

size_t sharing_lent(void)
{
    return atomic_load(&all.lent);
}

void sharing_close(struct tenrec_sharing *s)
{
    struct tenrec_sharing **at;
    bool over;

    if (!s)
        return;
    pthread_mutex_lock(&all.lock);
    pthread_mutex_lock(&s->lock);
    s->closed = true;
    sharing_in_close(s);
    sharing_reclaim(s);
    over = s->n_lent == 0;
    pthread_mutex_unlock(&s->lock);
    for (at = &all.first; over && *at != s; at = &(*at)->next)
        ;
    if (over)
        *at = s->next;
    pthread_mutex_unlock(&all.lock);
    if (over)
        sharing_free(s);
    else
        housekeeping_at(sharing_collect, clock_now_ns() + COLLECT_MIN_NS);
}

/* ---- lending ------------------------------------------------------------------- */

static void put_record(struct tenrec_share *share, const struct share_record *r)
{
    const struct share_record_bytes bytes = { .kind = (uint8_t)r->kind,
                                              .flags = (uint8_t)r->flags,
                                              .region = (uint8_t)r->region,
                                              .slot = htole16((uint16_t)r->slot),
                                              .offset = htole64(r->offset) };

    memcpy(share->record, &bytes, sizeof share->record);
}

/* Returns a free slot; RELEASE_PAGE_SLOTS: all are lent. The caller holds the lock, as for the
 * functions below. */
static unsigned free_slot(struct tenrec_sharing *s)
{
    if (s->n_lent == RELEASE_PAGE_SLOTS)
        return RELEASE_PAGE_SLOTS;
    while (s->lent[s->next_slot])
        s->next_slot = (s->next_slot + 1) % RELEASE_PAGE_SLOTS;
    return s->next_slot;
}

/* Returns the peer's index of the region; for a new region, the index that was unused for
 * longest. */
static unsigned region_index(struct tenrec_sharing *s, uint64_t region)
{
    unsigned oldest = 0;

    for (unsigned i = 0; i < SHARING_REGIONS; i++) {
        if (s->known[i] == region)
            return i;
        if (s->used[i] < s->used[oldest])
            oldest = i;
    }
    return oldest;
}

static bool add_copy(struct tenrec_share *share, int fd)
{
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

    if (copy < 0)
        return false;
    share->fd[share->n_fds++] = copy;
    return true;
}

static bool add_release_page(struct tenrec_sharing *s, struct tenrec_share *share)
{
    int fds[RELEASE_PAGE_FDS];

    if (release_page_make(&s->release_page, fds, NULL) != TENREC_OK)
        return false;
    for (unsigned i = 0; i < RELEASE_PAGE_FDS; i++)
        share->fd[share->n_fds++] = fds[i];
    s->lends = true;
    return true;
}

static void close_fds(struct tenrec_share *share)
{
    while (share->n_fds > 0)
        close(share->fd[--share->n_fds]);
}

/* Takes the block on success. */
static bool sharing_lend(struct tenrec_sharing *s, struct shared_block *b, struct share_record *r,
                         struct tenrec_share *share)
{
    const uint64_t region = shared_block_region(b);

    r->slot = free_slot(s);
    if (r->slot == RELEASE_PAGE_SLOTS)
        return false;
    r->region = region_index(s, region);
    if (!s->lends) {
        if (!add_release_page(s, share))
            return false;
        r->flags |= RECORD_RELEASE_PAGE;
    }
    if (s->known[r->region] != region) {
        if (!add_copy(share, shared_block_fd(b)))
            return false;
        r->flags |= RECORD_REGION;
    }
    s->known[r->region] = region;
    s->used[r->region] = ++s->clock;
    s->lent[r->slot] = b;
    s->n_lent++;
    s->last_slot = r->slot;
    s->next_slot = (r->slot + 1) % RELEASE_PAGE_SLOTS;
    if (atomic_fetch_add(&all.lent, 1) == 0)
        housekeeping_at(sharing_collect, clock_now_ns() + COLLECT_MIN_NS);
    return true;
}

/* Takes the block on success. The sender may drop the tensor, but not use it. */
static bool sharing_move(struct shared_block *b, struct share_record *r, struct tenrec_share *share)
{
    if (!add_copy(share, shared_block_fd(b)))
        return false;
    r->kind = RECORD_MOVED;
    r->flags |= RECORD_REGION;
    shared_block_drop(b);
    return true;
}

/* Drops a release page that was not sent after all. */
static void unmake_release_page(struct tenrec_sharing *s)
{
    release_page_close(&s->release_page);
    s->lends = false;
}

/* Returns the block of a tensor with another reference; NULL: it has no block. Mostly the block of
 * the last loan, which still holds it. The caller holds the lock. */
static struct shared_block *block_of(const struct tenrec_sharing *s,
                                     const struct tenrec_tensor_desc *desc)
{
    struct shared_block *last = s->lent[s->last_slot];

    if (!last || !shared_block_has(last, desc->data, desc->bytes))
        return shared_block_at(desc->data, desc->bytes);
    shared_block_share(last);
    return last;
}

bool sharing_share(struct tenrec_sharing *s, const struct tenrec_tensor_desc *desc,
                   struct tenrec_share *ret)
{
    struct share_record r = { .kind = RECORD_LENT };
    struct shared_block *b = NULL;
    enum shared_way way = SHARED_COPIED;
    bool ok = false;

    if (desc->bytes == 0 || desc->device.kind != TENREC_CPU ||
        (desc->flags & TENREC_TENSOR_UNSHARED) ||
        (desc->target.kind != TENREC_CPU && desc->target.kind != 0))
        return false;
    if (!shared_memory_is_there())
        return false;
    *ret = (struct tenrec_share){ .size = sizeof *ret };
    pthread_mutex_lock(&s->lock);
    if (!s->closed)
        b = block_of(s, desc);
    if (b)
        r.offset = shared_block_offset(b, desc->data);
    if (b && r.offset % SHARING_ALIGNMENT == 0) {
        /* Rarely: the page is in the caches of the thread that ends loans. */
        if (s->n_lent >= COLLECT_FROM)
            sharing_reclaim(s);
        way = shared_block_way(b);
        switch (way) {
        case SHARED_PRIVATE:
            r.kind = RECORD_PRIVATE;
            ok = r.offset % memfd_region_page() == 0 && sharing_lend(s, b, &r, ret);
            break;
        case SHARED_LENT:
            ok = sharing_lend(s, b, &r, ret);
            break;
        case SHARED_MOVED:
            ok = sharing_move(b, &r, ret);
            break;
        case SHARED_COPIED:
            break;
        }
        if (!ok && way != SHARED_LENT)
            shared_block_stay(b, way);
    }
    if (!ok && ret->n_fds > 0) {
        unmake_release_page(s);
        close_fds(ret);
    }
    pthread_mutex_unlock(&s->lock);
    if (ok)
        put_record(ret, &r);
    else
        shared_block_drop(b);
    return ok;
}

void sharing_share_back(struct tenrec_sharing *s, struct tenrec_share *share)
{
    const struct share_record r = sharing_record(share);

    pthread_mutex_lock(&s->lock);
    if (r.kind != RECORD_MOVED) {
        if (r.flags & RECORD_REGION)
            s->known[r.region] = 0;
        sharing_return(s, r.slot);
        if (r.flags & RECORD_RELEASE_PAGE)
            unmake_release_page(s);
    }
    pthread_mutex_unlock(&s->lock);
    close_fds(share);
}

const struct chain_sharing sharing_of_process = { .open = sharing_open,
                                                  .close = sharing_close,
                                                  .share = sharing_share,
                                                  .share_back = sharing_share_back,
                                                  .shared = sharing_shared };
