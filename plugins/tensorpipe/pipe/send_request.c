/* SPDX-License-Identifier: Apache-2.0 */
#include "pipe/send_request.h"

#include "pipe/pipe.h"
#include "pipe/pipe_owner.h"

#include <stdlib.h>

#define SEND_REQUEST_SPARES 8

void send_request_list_add(struct send_request_list *l, struct send_request *o)
{
    o->next = NULL;
    *l->last = o;
    l->last = &o->next;
}

static struct send_request *spares_pop(struct send_request_spares *s)
{
    struct send_request *o = s->first;

    if (o) {
        s->first = o->next;
        s->n--;
    }
    return o;
}

static void spares_push(struct send_request_spares *s, struct send_request *o)
{
    if (s->n == SEND_REQUEST_SPARES) {
        free(o);
        return;
    }
    o->next = s->first;
    s->first = o;
    s->n++;
}

void send_request_drop_spares(struct pipe *p)
{
    while (p->queue.lean.first)
        free(spares_pop(&p->queue.lean));
    while (p->queue.open.first)
        free(spares_pop(&p->queue.open));
}

/* Recycled: malloc would dominate its cost. */
static struct send_request *send_request_make(struct send_request_spares *spares, size_t cap,
                                              size_t need, unsigned dones)
{
    struct send_request *o = need <= cap ? spares_pop(spares) : NULL;

    if (!o) {
        if (need > cap)
            cap = need;
        o = malloc(sizeof *o + dones * sizeof o->done[0] + cap);
        if (!o)
            return NULL;
        o->cap = cap;
        o->cap_done = dones;
        o->buf = (unsigned char *)&o->done[dones];
    }
    o->next = NULL;
    o->msg = NULL;
    o->tensors = NULL;
    o->n_tensors = 0;
    o->parts = 1;
    o->charge = 0;
    o->len = 0;
    o->open = o->pinned = false;
    o->n_done = 0;
    o->frames.out = o;
    o->frames.n = 1;
    o->frames.at = 0;
    o->frames.awaited = o->frames.offered = false;
    o->frames.iov[0] = (struct iovec){ o->buf, 0 };
    return o;
}

struct send_request *send_request_new(struct pipe *p, size_t need)
{
    return send_request_make(&p->queue.lean, SEND_REQUEST_LEAN, need, 1);
}

struct send_request *send_request_new_open(struct pipe *p, size_t need)
{
    struct send_request *o =
        send_request_make(&p->queue.open, SEND_REQUEST_OPEN, need, SEND_REQUEST_DONES);

    if (!o)
        return NULL;
    o->open = true;
    o->charge = send_request_overhead(o);
    pipe_queued_add(p, o->charge);
    return o;
}

void send_request_close(struct pipe *p, struct send_request *o)
{
    if (!o->open)
        return;
    o->open = false;
    o->charge += o->cap - o->len;
    pipe_queued_add(p, o->cap - o->len);
}

size_t send_request_overhead(const struct send_request *o)
{
    return sizeof *o + o->cap_done * sizeof o->done[0] +
           (o->tensors != o->few ? o->n_tensors * sizeof *o->tensors : 0);
}

void send_request_free(struct pipe *p, struct send_request *o)
{
    if (o->tensors != o->few)
        free(o->tensors);
    if (o->cap_done == SEND_REQUEST_DONES && o->cap == SEND_REQUEST_OPEN)
        spares_push(&p->queue.open, o);
    else if (o->cap_done == 1 && o->cap == SEND_REQUEST_LEAN)
        spares_push(&p->queue.lean, o);
    else
        free(o);
}

void send_request_add_done(struct pipe *p, struct send_request *o, struct tenrec_done done)
{
    if (!done.fn)
        return;
    atomic_fetch_add_explicit(&p->queue.untold, 1, memory_order_relaxed);
    o->done[o->n_done++] = done;
}

void send_request_fill(struct pipe *p, struct send_request *o, const struct bundle *b, size_t from)
{
    size_t n = b->len - from;

    memcpy(o->buf + o->len, b->buf + from, n);
    o->len += n;
    o->frames.iov[0].iov_len += n;
    o->charge += n;
    pipe_queued_add(p, n);
    for (unsigned i = 0; i < b->n_done; i++)
        send_request_add_done(p, o, b->done[i]);
}

void send_request_retire(struct pipe *p, struct send_request *o, struct told *t)
{
    pipe_queued_add(p, -o->charge);
    if (p->queue.n_waiting)
        pthread_cond_broadcast(&p->queue.room);
    if (p->queue.full && atomic_load(&p->queue.bytes) <= p->ep->options->max_queued_bytes / 2) {
        p->queue.full = false;
        pipe_post(p, &p->read.task);
    }
    if (t->n_done + o->n_done > 2 * SEND_REQUEST_DONES || t->n_msg == 8) {
        send_request_list_add(&t->rest, o);
        return;
    }
    for (unsigned i = 0; i < o->n_done; i++)
        t->done[t->n_done++] = o->done[i];
    if (o->msg)
        t->msg[t->n_msg++] = o->msg;
    send_request_free(p, o);
}

void told_tell(struct pipe *p, struct told *t, const tenrec_error *why)
{
    unsigned n = t->n_done;
    struct send_request *next;

    for (unsigned i = 0; i < t->n_done; i++)
        t->done[i].fn(t->done[i].arg, why);
    for (unsigned i = 0; i < t->n_msg; i++)
        t->msg[i]->release(t->msg[i]);
    for (struct send_request *o = t->rest.first; o; o = next) {
        next = o->next;
        for (unsigned i = 0; i < o->n_done; i++)
            o->done[i].fn(o->done[i].arg, why);
        if (o->msg)
            o->msg->release(o->msg);
        n += o->n_done;
        if (o->tensors != o->few)
            free(o->tensors);
        free(o);
    }
    if (n)
        atomic_fetch_sub(&p->queue.untold, n);
    if (atomic_load_explicit(&p->ep->drainers, memory_order_relaxed))
        p->ep->owner->told(p->ep);
}
