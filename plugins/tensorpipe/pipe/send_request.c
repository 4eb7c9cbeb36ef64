/* SPDX-License-Identifier: Apache-2.0 */
#include "pipe/send_request.h"

#include "pipe/pipe.h"
#include "pipe/pipe_services.h"

#include <stdlib.h>

#define SEND_REQUEST_SPARES 8

void send_request_list_add(struct send_request_list *l, struct send_request *request)
{
    request->next = NULL;
    *l->last = request;
    l->last = &request->next;
}

static struct send_request *spares_pop(struct send_request_spares *s)
{
    struct send_request *request = s->first;

    if (request) {
        s->first = request->next;
        s->n--;
    }
    return request;
}

static void spares_push(struct send_request_spares *s, struct send_request *request)
{
    if (s->n == SEND_REQUEST_SPARES) {
        free(request);
        return;
    }
    request->next = s->first;
    s->first = request;
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
    struct send_request *request = need <= cap ? spares_pop(spares) : NULL;

    if (!request) {
        if (need > cap)
            cap = need;
        request = malloc(sizeof *request + dones * sizeof request->done[0] + cap);
        if (!request)
            return NULL;
        request->cap = cap;
        request->cap_done = dones;
        request->buf = (unsigned char *)&request->done[dones];
    }
    request->next = NULL;
    request->msg = NULL;
    request->tensors = NULL;
    request->n_tensors = 0;
    request->parts = 1;
    request->charge = 0;
    request->large = false;
    request->len = 0;
    request->open = request->pinned = false;
    request->n_done = 0;
    request->frames.request = request;
    request->frames.n = 1;
    request->frames.at = 0;
    request->frames.awaited = request->frames.offered = false;
    request->frames.iov[0] = (struct iovec){ request->buf, 0 };
    return request;
}

struct send_request *send_request_new(struct pipe *p, size_t need)
{
    return send_request_make(&p->queue.lean, SEND_REQUEST_LEAN, need, 1);
}

struct send_request *send_request_new_open(struct pipe *p, size_t need)
{
    struct send_request *request =
        send_request_make(&p->queue.open, SEND_REQUEST_OPEN, need, SEND_REQUEST_DONES);

    if (!request)
        return NULL;
    request->open = true;
    request->charge = send_request_overhead(request);
    pipe_queued_add(p, request->charge);
    return request;
}

void send_request_close(struct pipe *p, struct send_request *request)
{
    if (!request->open)
        return;
    request->open = false;
    request->charge += request->cap - request->len;
    pipe_queued_add(p, request->cap - request->len);
}

size_t send_request_overhead(const struct send_request *request)
{
    return sizeof *request + request->cap_done * sizeof request->done[0] +
           (request->tensors != request->few ? request->n_tensors * sizeof *request->tensors : 0);
}

void send_request_free(struct pipe *p, struct send_request *request)
{
    if (request->tensors != request->few)
        free(request->tensors);
    if (request->cap_done == SEND_REQUEST_DONES && request->cap == SEND_REQUEST_OPEN)
        spares_push(&p->queue.open, request);
    else if (request->cap_done == 1 && request->cap == SEND_REQUEST_LEAN)
        spares_push(&p->queue.lean, request);
    else
        free(request);
}

void send_request_add_done(struct pipe *p, struct send_request *request, struct tenrec_done done)
{
    if (!done.fn)
        return;
    atomic_fetch_add_explicit(&p->queue.untold, 1, memory_order_relaxed);
    request->done[request->n_done++] = done;
}

void send_request_fill(struct pipe *p, struct send_request *request, const struct bundle *b,
                       size_t from)
{
    size_t n = b->len - from;

    memcpy(request->buf + request->len, b->buf + from, n);
    request->len += n;
    request->frames.iov[0].iov_len += n;
    request->charge += n;
    pipe_queued_add(p, n);
    for (unsigned i = 0; i < b->n_done; i++)
        send_request_add_done(p, request, b->done[i]);
}

void send_request_retire(struct pipe *p, struct send_request *request, struct told *t)
{
    pipe_uncharge_message(p, request);
    if (p->queue.n_waiting)
        pthread_cond_broadcast(&p->queue.room);
    if (p->queue.full && pipe_queue_is_low(p)) {
        p->queue.full = false;
        pipe_post(p, &p->read.task);
    }
    if (t->n_done + request->n_done > 2 * SEND_REQUEST_DONES || t->n_msg == 8) {
        send_request_list_add(&t->rest, request);
        return;
    }
    for (unsigned i = 0; i < request->n_done; i++)
        t->done[t->n_done++] = request->done[i];
    if (request->msg)
        t->msg[t->n_msg++] = request->msg;
    send_request_free(p, request);
}

void told_tell(struct pipe *p, struct told *t, const tenrec_error *why)
{
    unsigned n = t->n_done;
    struct send_request *next;

    for (unsigned i = 0; i < t->n_done; i++)
        t->done[i].fn(t->done[i].arg, why);
    for (unsigned i = 0; i < t->n_msg; i++)
        t->msg[i]->release(t->msg[i]);
    for (struct send_request *request = t->rest.first; request; request = next) {
        next = request->next;
        for (unsigned i = 0; i < request->n_done; i++)
            request->done[i].fn(request->done[i].arg, why);
        if (request->msg)
            request->msg->release(request->msg);
        n += request->n_done;
        if (request->tensors != request->few)
            free(request->tensors);
        free(request);
    }
    if (n)
        atomic_fetch_sub(&p->queue.untold, n);
    if (atomic_load_explicit(&p->ep->drainers, memory_order_relaxed))
        p->ep->owner->told(p->ep);
}
