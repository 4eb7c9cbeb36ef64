/* SPDX-License-Identifier: Apache-2.0 */
/* link_pieces_in.c - tensors that arrive in pieces, through pinned memory. */
#include "cuda/link/link_parts.h"
#include "endpoint.h"

#include <stdlib.h>

struct landing *link_find(const struct link *l, uint64_t number, struct arriving **ret)
{
    for (struct arriving *m = l->arriving; m; m = m->next)
        for (uint32_t i = 0; i < m->n; i++) {
            struct landing *at = &m->landing[i];

            if (at->is_ours && at->method == METHOD_BASIC && !at->is_there &&
                at->number == number) {
                if (ret)
                    *ret = m;
                return at;
            }
        }
    return NULL;
}

static void link_starve(struct pipe *p)
{
    struct cuda *c = p->ep->cuda;
    struct link *l = p->devices.link;

    if (l->is_starved)
        return;
    l->is_starved = true;
    l->next_starved = c->starved;
    c->starved = l;
    l->pipe = p;
    p->services->ref(p);
}

void link_feed(struct cuda *c)
{
    struct link *l = c->starved, *next;

    c->starved = NULL;
    for (; l; l = next) {
        struct pipe *p = l->pipe;

        next = l->next_starved;
        l->is_starved = false;
        if (pipe_state(p) == PIPE_ESTABLISHED)
            link_read(p);
        p->services->unref(p);
    }
}

/* A piece on its way from pinned memory to the device. */
struct piece_in {
    struct inflight inflight;
    struct pipe *pipe; /* owns a reference */
    struct staging_piece *piece;
};

static void piece_landed(struct inflight *f, const tenrec_error *why)
{
    struct piece_in *i = CONTAINER(f, struct piece_in, inflight);
    struct cuda *c = i->pipe->ep->cuda;

    if (why)
        link_copy_failed(i->pipe, why);
    staging_give(&c->in, i->piece);
    i->pipe->services->unref(i->pipe);
    free(i);
    link_feed(c);
}

/* Nothing was done with it; others may wait for one. */
static void give_back(struct cuda *c, struct staging_piece *piece)
{
    staging_give(&c->in, piece);
    reactor_post(&c->ep->reactor, &c->task);
}

/* Selects the destination of the next bytes. Returns false if none is free now; other errors are
 * the message's. */
static bool find_room(struct pipe *p, struct arriving *m, const struct landing *at)
{
    struct link *l = p->devices.link;
    const struct tenrec_tensor_desc *t = landing_tensor(m, at);
    tenrec_error why;
    tenrec_status st;

    l->in.piece = NULL;
    l->in.to = NULL;
    if (!t)
        return true;
    if (t->device.kind != TENREC_CUDA) {
        l->in.to = (unsigned char *)t->data + at->got;
        return true;
    }
    st = staging_get(&p->ep->cuda->in, t->device.index, &l->in.piece, &why);
    if (st == TENREC_EAGAIN) {
        link_starve(p);
        return false;
    }
    if (st)
        link_skip(m, &why);
    else
        l->in.to = l->in.piece->data;
    return true;
}

bool link_piece_begin(struct pipe *p, uint64_t number, uint64_t offset, uint64_t len)
{
    struct link *l = p->devices.link;
    struct arriving *m;
    struct landing *at = link_find(l, number, &m);

    if (!at)
        return false; /* its message arrives on another connection */
    if (offset != at->got || !len || len > STAGING_PIECE || len > at->len - at->got) {
        p->services->failf(p, TENREC_EPROTOCOL, 0,
                           "sent %llu bytes of a tensor that were not expected",
                           (unsigned long long)len);
        return false;
    }
    if (!find_room(p, m, at))
        return false;
    l->in.on = true;
    l->in.len = len;
    l->in.got = 0;
    l->in.message = m;
    l->in.tensor = (uint32_t)(at - m->landing);
    return true;
}

/* Queues the copy of the piece that was read. */
static tenrec_status start_piece(struct pipe *p, const struct tenrec_tensor_desc *t, uint64_t at,
                                 struct staging_piece *piece, uint64_t len, tenrec_error *err)
{
    const struct tenrec_stream s = { t->device, t->stream };
    struct piece_in *i = calloc(1, sizeof *i);
    tenrec_status st;

    if (!i)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a piece of a tensor");
    *i = (struct piece_in){ .inflight.landed = piece_landed, .pipe = p, .piece = piece };
    st = inflight_copy(&p->ep->cuda->inflight, &i->inflight, &s, (unsigned char *)t->data + at,
                       piece->data, len, err);
    if (st)
        free(i);
    else
        p->services->ref(p);
    return st;
}

void link_piece_end(struct pipe *p)
{
    struct cuda *c = p->ep->cuda;
    struct link *l = p->devices.link;
    struct arriving *m = l->in.message;
    struct landing *at = &m->landing[l->in.tensor];
    const struct tenrec_tensor_desc *t = landing_tensor(m, at);
    tenrec_error why;

    l->in.on = false;
    if (l->in.piece && (!t || start_piece(p, t, at->got, l->in.piece, l->in.len, &why))) {
        give_back(c, l->in.piece);
        if (t)
            link_skip(m, &why);
    }
    l->in.piece = NULL;
    at->got += l->in.len;
    if (at->got == at->len)
        link_landed(at, m);
    if (!m->left)
        link_finish(p, m);
}

void link_pieces_broken(struct pipe *p)
{
    struct link *l = p->devices.link;

    if (l->in.piece)
        give_back(p->ep->cuda, l->in.piece);
    l->in.piece = NULL;
    l->in.on = false;
}
