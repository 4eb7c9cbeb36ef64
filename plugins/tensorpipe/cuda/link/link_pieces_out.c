/* SPDX-License-Identifier: Apache-2.0 */
/* link_pieces_out.c - tensors that leave in pieces, by way of pinned memory. */
#include "cuda/link/link_parts.h"
#include "endpoint.h"

#include <stdlib.h>

#define WINDOW 8 /* pieces of one tensor that are on their way */

/* A piece of a tensor: copied to the host, then written. */
struct piece_out {
    struct inflight inflight;
    struct piece_out *next; /* of cuda.written */
    struct lent *lent;
    struct cuda *cuda;
    struct staging_piece *piece; /* NULL: from memory of the host */
    unsigned char *data;
    uint64_t offset, len;
};

static void piece_free(struct piece_out *o)
{
    if (o->piece)
        staging_give(&o->cuda->out, o->piece);
    free(o);
}

/* Called on the writing thread; the loop thread continues the transfer. */
static void piece_written(void *arg, const tenrec_error *err)
{
    struct piece_out *o = arg;
    struct cuda *c = o->cuda;

    (void)err; /* the pipe broke, which fails this tensor with all others */
    pthread_mutex_lock(&c->lock);
    o->next = c->written;
    c->written = o;
    pthread_mutex_unlock(&c->lock);
    reactor_post(&c->ep->reactor, &c->task);
}

static void send_piece(struct piece_out *o)
{
    struct lent *l = o->lent;
    unsigned char head[PIECE_HEAD] = { SAID_PIECE };

    put_le64(head + 1, l->number);
    put_le64(head + 9, o->offset);
    if (l->pipe->services->send_frame(l->pipe, l->pipe->devices.role, head, sizeof head, o->data,
                                      o->len, (struct tenrec_done){ piece_written, o }))
        return;
    if (pipe_state(l->pipe) != PIPE_BROKEN)
        l->pipe->services->failf(l->pipe, TENREC_ENOMEM, 0, "no memory for a piece of a tensor");
    l->stopped = true;
    piece_written(o, NULL);
}

static void piece_landed(struct inflight *f, const tenrec_error *why)
{
    struct piece_out *o = CONTAINER(f, struct piece_out, inflight);

    if (why)
        lent_failed(o->lent, why);
    if (!o->lent->stopped) {
        send_piece(o);
        return;
    }
    piece_written(o, NULL);
}

/* Queues the copy of it. errors: those of the driver; EAGAIN: wait for a piece */
static tenrec_status start_copy(struct piece_out *o, tenrec_error *err)
{
    struct lent *l = o->lent;
    tenrec_status st = staging_get(&o->cuda->out, l->stream.device.index, &o->piece, err);

    if (st)
        return st;
    o->data = o->piece->data;
    o->inflight.landed = piece_landed;
    return inflight_copy(&o->cuda->inflight, &o->inflight, &l->stream, o->data, l->data + o->offset,
                         o->len, err);
}

static tenrec_status next_piece(struct lent *l, tenrec_error *err)
{
    struct piece_out *o = calloc(1, sizeof *o);
    const uint64_t left = l->bytes - l->issued;
    tenrec_status st = TENREC_OK;

    if (!o)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a piece of a tensor");
    o->lent = l;
    o->cuda = l->pipe->ep->cuda;
    o->offset = l->issued;
    o->len = left < STAGING_PIECE ? left : STAGING_PIECE;
    if (l->stream.device.kind == TENREC_CUDA)
        st = start_copy(o, err);
    if (st) {
        piece_free(o);
        return st;
    }
    l->issued += o->len;
    l->busy++;
    if (l->stream.device.kind != TENREC_CUDA) {
        o->data = l->data + o->offset;
        send_piece(o);
    }
    return TENREC_OK;
}

bool lent_pump(struct lent *l)
{
    tenrec_error err;

    l->waits = false;
    while (!l->stopped && l->issued < l->bytes && l->busy < WINDOW) {
        tenrec_status st = next_piece(l, &err);

        if (st == TENREC_EAGAIN) {
            l->waits = true;
            l->pipe->ep->cuda->out_starved = true;
            break;
        }
        if (st)
            lent_failed(l, &err);
    }
    if (!lent_is_done(l))
        return true;
    lent_end(l);
    return false;
}

static void lent_pump_all(struct cuda *c)
{
    struct lent *l, *next;

    c->out_starved = false;
    for (l = c->lent; l; l = next) {
        next = l->next;
        if (l->waits)
            lent_pump(l);
    }
}

void pieces_written(struct cuda *c)
{
    struct piece_out *o, *next;

    pthread_mutex_lock(&c->lock);
    o = c->written;
    c->written = NULL;
    pthread_mutex_unlock(&c->lock);
    for (; o; o = next) {
        struct lent *l = o->lent;

        next = o->next;
        piece_free(o);
        l->busy--;
        lent_pump(l);
    }
    if (c->out_starved)
        lent_pump_all(c);
    link_feed(c);
}
