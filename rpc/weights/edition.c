/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/weights/edition.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/tensor/tensor.h"
#include "rpc/future/pool.h"
#include "rpc/future/thread_state.h"
#include "rpc/region/regions.h"

#include <stdlib.h>
#include <string.h>

/* ---- the list ----------------------------------------------------------------------- */

void editions_init(struct editions *l)
{
    pthread_mutex_init(&l->lock, NULL);
    clock_cond_init(&l->changed);
    l->next_number = 1;
}

void editions_finish(struct editions *l)
{
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
}

tenrec_status editions_start(struct editions *l, tenrec_error *err)
{
    int64_t life;
    tenrec_status st = region_random(&life, sizeof life, err);

    if (st != TENREC_OK)
        return st;
    pthread_mutex_lock(&l->lock);
    l->life = life;
    pthread_mutex_unlock(&l->lock);
    return TENREC_OK;
}

int64_t editions_number(struct editions *l)
{
    int64_t number;

    pthread_mutex_lock(&l->lock);
    number = l->next_number++;
    pthread_mutex_unlock(&l->lock);
    return number;
}

size_t editions_count(struct editions *l)
{
    size_t n = 0;

    pthread_mutex_lock(&l->lock);
    for (const struct edition *h = l->first; h; h = h->next)
        n++;
    pthread_mutex_unlock(&l->lock);
    return n;
}

/* ---- an edition --------------------------------------------------------------------- */

static void edition_free(struct edition *h)
{
    for (size_t i = 0; h->memory && i < h->n; i++) {
        tenrec_region_drop(h->memory[i].region);
        tenrec_tensor_drop(h->memory[i].tensor);
    }
    free(h->memory);
    free(h->piece);
    free(h);
}

static void edition_drop_some(struct edition *h, size_t refs, size_t transfers)
{
    struct editions *l = h->list;
    bool last;

    pthread_mutex_lock(&l->lock);
    h->transfers -= transfers;
    if (transfers && h->transfers == 0)
        pthread_cond_broadcast(&l->changed);
    h->refs -= refs;
    last = h->refs == 0;
    pthread_mutex_unlock(&l->lock);
    if (last)
        edition_free(h);
}

void edition_drop(struct edition *h)
{
    if (h)
        edition_drop_some(h, 1, 0);
}

tenrec_status edition_new(const struct tenrec_weights *s, enum edition_kind kind,
                          struct edition **ret, tenrec_error *err)
{
    struct edition *h = memory_new(1, sizeof *h);

    *ret = h;
    if (!h)
        return memory_fail(err);
    h->list = editions_of(s->w);
    h->of = s;
    h->kind = kind;
    h->refs = 2;
    pthread_mutex_lock(&h->list->lock);
    h->number = h->list->next_number++;
    h->next = h->list->first;
    h->list->first = h;
    pthread_mutex_unlock(&h->list->lock);
    return TENREC_OK;
}

static tenrec_status memory_register(struct edition_memory *m, struct tenrec_worker *w,
                                     enum edition_kind kind, struct tenrec_tensor *tensor,
                                     struct piece *p, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    if (kind == EDITION_COPY)
        st = tenrec_tensor_copy(tensor, &m->tensor, err);
    else
        m->tensor = tenrec_tensor_share(tensor);
    if (st != TENREC_OK)
        return st;
    if (kind != EDITION_PULLED)
        p->checksum = piece_checksum(p, p, tenrec_tensor_data(m->tensor));
    if (p->bytes == 0)
        return TENREC_OK;
    st = tenrec_region_new(w, m->tensor, TENREC_REGION_READ, &m->region, err);
    if (st == TENREC_OK)
        tenrec_region_describe(m->region, &p->ref);
    return st;
}

tenrec_status edition_register(struct edition *h, int64_t version, struct piece *piece,
                               const struct tenrec_weights_box *boxes, size_t n, tenrec_error *err)
{
    tenrec_status st;

    h->piece = piece;
    h->memory = memory_new(n, sizeof *h->memory);
    st = h->memory ? TENREC_OK : memory_fail(err);
    for (size_t i = 0; i < n && st == TENREC_OK; i++) {
        st = memory_register(&h->memory[i], h->of->w, h->kind, piece_box_at(boxes, i)->tensor,
                             &piece[i], err);
        if (st != TENREC_OK)
            piece_box_prefix(boxes, i, err);
    }
    pthread_mutex_lock(&h->list->lock);
    h->version = version;
    h->n = h->memory ? n : 0;
    h->over |= st != TENREC_OK;
    pthread_mutex_unlock(&h->list->lock);
    return st;
}

/* ---- bytes that arrive -------------------------------------------------------------- */

static void edition_bytes_drop(void *arg, void *data)
{
    (void)data;
    edition_drop_some(arg, 1, 1);
}

tenrec_status edition_bytes_new(struct edition *h, size_t i, uint64_t offset, uint64_t bytes,
                                struct tenrec_tensor **ret, tenrec_error *err)
{
    char *data = (char *)tenrec_tensor_data(h->memory[i].tensor) + offset;
    tenrec_status st;
    bool over;

    pthread_mutex_lock(&h->list->lock);
    over = h->over;
    h->refs += !over;
    h->transfers += !over;
    pthread_mutex_unlock(&h->list->lock);
    if (over)
        return tenrec_fail(err, TENREC_ECANCELED, "the pull was withdrawn");
    st = region_bytes_new(data, bytes, edition_bytes_drop, h, ret, err);
    if (st != TENREC_OK)
        edition_drop_some(h, 1, 1);
    return st;
}

/* ---- its readers -------------------------------------------------------------------- */

struct edition_ask {
    struct edition_ask *next;
    struct tenrec_call *call;
    int64_t number, bytes;
    bool refs;
    tenrec_error why; /* of the answer */
};

static void asks_finish(struct edition_ask *done)
{
    struct edition_ask *next;

    for (; done; done = next) {
        next = done->next;
        tenrec_call_finish(done->call, done->why.code == TENREC_OK ? NULL : &done->why);
        free(done);
    }
}

static void ask_answer(struct edition_ask *a, const struct edition *h)
{
    struct tenrec_region_ref *ref = a->refs ? memory_new(h->n, sizeof *ref) : NULL;
    struct tenrec_value v = tenrec_value_nil();

    for (size_t i = 0; ref && i < h->n; i++)
        ref[i] = h->piece[i].ref;
    if (ref)
        v = tenrec_value_bytes(ref, h->n * sizeof *ref);
    if (a->refs && !ref)
        memory_fail(&a->why);
    else
        tenrec_call_return(a->call, &v, &a->why);
    free(ref);
}

/* The lock is held. Returns true if the ask has an answer. */
static bool ask_try(struct edition_ask *a, const struct edition *h)
{
    if (!h || h->over) {
        tenrec_fail(&a->why, TENREC_ESTALE, "the weights were withdrawn");
        return true;
    }
    if (h->n == 0 || h->arrived < (uint64_t)a->bytes)
        return tenrec_call_canceled(a->call);
    ask_answer(a, h);
    return true;
}

/* The lock is held. Moves the asks that have an answer to *done. */
static void edition_try(struct edition *h, struct edition_ask **done)
{
    struct edition_ask **at = &h->asks, *a;

    while ((a = *at) != NULL) {
        if (ask_try(a, h)) {
            *at = a->next;
            a->next = *done;
            *done = a;
        } else {
            at = &a->next;
        }
    }
}

static tenrec_status edition_read(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct editions *l = editions_of(tenrec_call_worker(call));
    struct edition_ask *a = memory_new(1, sizeof *a), *done = NULL;
    struct edition *h;
    tenrec_status st;

    (void)arg;
    if (!a)
        return memory_fail(err);
    st = tenrec_call_get_args(call, err, "iib", &a->number, &a->bytes, &a->refs);
    if (st != TENREC_OK) {
        free(a);
        return st;
    }
    a->call = call;
    pthread_mutex_lock(&l->lock);
    for (h = l->first; h && h->number != a->number;)
        h = h->next;
    if (h) {
        a->next = h->asks;
        h->asks = a;
        edition_try(h, &done);
    } else {
        ask_try(a, NULL);
        done = a;
    }
    pthread_mutex_unlock(&l->lock);
    asks_finish(done);
    return TENREC_OK;
}

tenrec_status edition_serve(struct functions *f, tenrec_error *err)
{
    return functions_add(f, EDITION_READ, edition_read, NULL, TENREC_INLINE | TENREC_LATER, err);
}

void edition_arrived(struct edition *h, uint64_t bytes)
{
    struct edition_ask *done = NULL;

    pthread_mutex_lock(&h->list->lock);
    h->arrived = bytes;
    edition_try(h, &done);
    pthread_mutex_unlock(&h->list->lock);
    asks_finish(done);
}

void editions_stop(struct editions *l, const tenrec_error *why)
{
    struct edition_ask *done = NULL, *a;

    pthread_mutex_lock(&l->lock);
    for (struct edition *h = l->first; h; h = h->next) {
        h->over = true;
        while ((a = h->asks) != NULL) {
            h->asks = a->next;
            a->why = *why;
            a->next = done;
            done = a;
        }
    }
    pthread_mutex_unlock(&l->lock);
    asks_finish(done);
}

/* ---- its end ------------------------------------------------------------------------ */

/* Returns the number of its tensors. */
static size_t edition_over(struct edition *h)
{
    struct edition_ask *done = NULL;
    size_t n;

    pthread_mutex_lock(&h->list->lock);
    h->over = true;
    n = h->n;
    edition_try(h, &done);
    pthread_mutex_unlock(&h->list->lock);
    asks_finish(done);
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
