/* SPDX-License-Identifier: Apache-2.0 */
/* edition_end.c - the end of editions: others may read them no more, and their transfers end. */
#include "rpc/weights/edition.h"

#include "core/base/clock.h"
#include "rpc/future/pool.h"
#include "rpc/future/thread_state.h"

/* Returns the number of its tensors. */
static size_t edition_over(struct edition *h)
{
    struct later *done = NULL;
    size_t n;

    pthread_mutex_lock(&h->list->lock);
    h->over = true;
    n = h->n;
    edition_try(h, &done);
    pthread_mutex_unlock(&h->list->lock);
    later_finish(done);
    return n;
}

void edition_unlist(struct edition *h)
{
    struct edition **at = &h->list->first;
    bool found;

    pthread_mutex_lock(&h->list->lock);
    while (*at && *at != h)
        at = &(*at)->next;
    found = *at == h;
    if (found)
        *at = h->next;
    pthread_mutex_unlock(&h->list->lock);
    if (found)
        edition_drop(h);
}

static bool edition_is_quiet(struct edition *h)
{
    size_t transfers;

    pthread_mutex_lock(&h->list->lock);
    transfers = h->transfers;
    pthread_mutex_unlock(&h->list->lock);
    return transfers == 0;
}

void edition_end(struct edition *h)
{
    const size_t n = edition_over(h);
    bool quiet = true;

    for (size_t i = 0; i < n; i++)
        if (h->memory[i].region && tenrec_region_revoke(h->memory[i].region, 1, NULL) != TENREC_OK)
            quiet = false;
    if (quiet && edition_is_quiet(h))
        edition_unlist(h);
}

static int64_t left_ms(uint64_t until_ns)
{
    const int ms = clock_left_ms(until_ns);

    return ms < 0 ? TENREC_TIMEOUT_NONE : ms > 0 ? ms : 1;
}

static tenrec_status edition_await(struct edition *h, uint64_t until_ns, tenrec_error *err)
{
    struct editions *l = h->list;
    tenrec_status st = TENREC_OK;
    struct pool *pool = thread_state.pool;

    if (pool)
        pool_block_begin(pool);
    pthread_mutex_lock(&l->lock);
    while (h->transfers > 0 && clock_cond_wait(&l->changed, &l->lock, until_ns))
        ;
    if (h->transfers > 0)
        st =
            tenrec_fail(err, TENREC_ETIMEDOUT,
                        "%zu transfers into the memory have not ended: a source is stopped or slow",
                        h->transfers);
    pthread_mutex_unlock(&l->lock);
    if (pool)
        pool_block_end(pool);
    return st;
}

tenrec_status edition_end_wait(struct edition *h, uint64_t until_ns, tenrec_error *err)
{
    const size_t n = edition_over(h);
    tenrec_status st = TENREC_OK;

    for (size_t i = 0; i < n && st == TENREC_OK; i++)
        if (h->memory[i].region)
            st = tenrec_region_revoke(h->memory[i].region, left_ms(until_ns), err);
    if (st == TENREC_OK)
        st = edition_await(h, until_ns, err);
    if (st == TENREC_OK)
        edition_unlist(h);
    else
        tenrec_error_prefix(err, "version %lld", (long long)h->version);
    return st;
}

struct edition *edition_find(struct editions *l, edition_is_fn *is, const void *arg)
{
    struct edition *h;

    pthread_mutex_lock(&l->lock);
    for (h = l->first; h && !is(h, arg);)
        h = h->next;
    if (h)
        h->refs++;
    pthread_mutex_unlock(&l->lock);
    return h;
}

/* It is over, and its transfers have ended since. */
static bool edition_is_left_over(const struct edition *h, const void *arg)
{
    (void)arg;
    if (!h->over || h->transfers > 0)
        return false;
    for (size_t i = 0; i < h->n; i++)
        if (h->memory[i].region && tenrec_region_pending(h->memory[i].region) > 0)
            return false;
    return true;
}

void editions_sweep(struct editions *l)
{
    struct edition *h;

    while ((h = edition_find(l, edition_is_left_over, NULL)) != NULL) {
        edition_unlist(h);
        edition_drop(h);
    }
}
