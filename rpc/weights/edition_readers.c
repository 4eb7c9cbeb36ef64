/* SPDX-License-Identifier: Apache-2.0 */
/* edition_readers.c - workers that read an edition, and wait for the bytes that it has not yet. */
#include "rpc/weights/edition.h"

#include "core/base/memory.h"

#include <stdlib.h>

/* A reader that waits until so many bytes have arrived. */
struct edition_ask {
    struct later later; /* first */
    int64_t number, bytes;
    bool refs;
};

static void ask_answer(struct edition_ask *a, const struct edition *h)
{
    struct tenrec_region_ref *ref = a->refs ? memory_new(h->n, sizeof *ref) : NULL;
    struct tenrec_value v = tenrec_value_int((int64_t)h->arrived);

    for (size_t i = 0; ref && i < h->n; i++)
        ref[i] = h->piece[i].ref;
    if (ref)
        v = tenrec_value_bytes(ref, h->n * sizeof *ref);
    if (a->refs && !ref)
        memory_fail(&a->later.why);
    else
        tenrec_call_return(a->later.call, &v, &a->later.why);
    free(ref);
}

/* The lock is held. Returns true if the ask has an answer. */
static bool ask_try(struct later *l, void *edition)
{
    struct edition_ask *a = (struct edition_ask *)(void *)l;
    const struct edition *h = edition;

    if (!h || h->over) {
        tenrec_fail(&l->why, TENREC_ESTALE, "the weights were withdrawn");
        return true;
    }
    if (h->n == 0 || h->arrived < (uint64_t)a->bytes)
        return tenrec_call_canceled(l->call);
    ask_answer(a, h);
    return true;
}

void edition_try(struct edition *h, struct later **done)
{
    later_try(&h->asks, ask_try, h, done);
}

static tenrec_status edition_read(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct editions *l = editions_of(tenrec_call_worker(call));
    struct edition_ask *a = memory_new(1, sizeof *a);
    struct later *done = NULL;
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
    a->later.call = call;
    pthread_mutex_lock(&l->lock);
    for (h = l->first; h && h->number != a->number;)
        h = h->next;
    if (h) {
        later_add(&h->asks, &a->later);
        edition_try(h, &done);
    } else {
        ask_try(&a->later, NULL);
        done = &a->later;
    }
    pthread_mutex_unlock(&l->lock);
    later_finish(done);
    return TENREC_OK;
}

tenrec_status edition_serve(struct functions *f, tenrec_error *err)
{
    return functions_add(f, EDITION_READ, edition_read, NULL, TENREC_INLINE | TENREC_LATER, err);
}

void edition_arrived(struct edition *h, uint64_t bytes)
{
    struct later *done = NULL;

    pthread_mutex_lock(&h->list->lock);
    h->arrived = bytes;
    edition_try(h, &done);
    pthread_mutex_unlock(&h->list->lock);
    later_finish(done);
}

void editions_stop(struct editions *l, const tenrec_error *why)
{
    struct later *done = NULL;

    pthread_mutex_lock(&l->lock);
    for (struct edition *h = l->first; h; h = h->next) {
        h->over = true;
        later_fail(&h->asks, why, &done);
    }
    pthread_mutex_unlock(&l->lock);
    later_finish(done);
}
