/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/weights/edition.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "rpc/region/region_copy.h"

#include <stdlib.h>
#include <tenrec/device.h>

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

int64_t editions_version(struct editions *l)
{
    const struct edition *h;
    int64_t version;

    pthread_mutex_lock(&l->lock);
    for (h = l->first; h && (h->over || h->n == 0 || (h->kind == EDITION_PULLED && !h->whole));)
        h = h->next;
    version = h ? h->version : 0;
    pthread_mutex_unlock(&l->lock);
    return version;
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

/* The checksum of a tensor, which may be on a device. */
static tenrec_status memory_sum(struct tenrec_tensor *t, struct piece *p, tenrec_error *err)
{
    struct tenrec_tensor *host;
    tenrec_status st = piece_tensor_in_host(t, &host, err);

    if (st == TENREC_OK && !piece_checksum(p, tenrec_tensor_data(host), &p->checksum))
        st = memory_fail(err);
    tenrec_tensor_drop(host);
    return st;
}

static tenrec_status memory_register(struct edition_memory *m, struct tenrec_worker *w,
                                     enum edition_kind kind, struct tenrec_tensor *tensor,
                                     struct piece *p, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    if (kind == EDITION_COPY)
        st = tenrec_tensor_to(tensor, (struct tenrec_device){ TENREC_CPU, 0 }, &m->tensor, err);
    else
        m->tensor = tenrec_tensor_share(tensor);
    if (st == TENREC_OK && kind != EDITION_PULLED)
        st = memory_sum(m->tensor, p, err);
    if (st != TENREC_OK || p->bytes == 0)
        return st;
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
    const struct region_bytes b = { h->memory[i].tensor, offset, bytes, NULL };
    tenrec_status st;
    bool over;

    pthread_mutex_lock(&h->list->lock);
    over = h->over;
    h->refs += !over;
    h->transfers += !over;
    pthread_mutex_unlock(&h->list->lock);
    if (over)
        return tenrec_fail(err, TENREC_ECANCELED, "the pull was withdrawn");
    st = region_bytes_new(&b, edition_bytes_drop, h, ret, err);
    if (st != TENREC_OK)
        edition_drop_some(h, 1, 1);
    return st;
}
