/* SPDX-License-Identifier: Apache-2.0 */
/* channel_pull.c - tensors that are read out of the sender's memory. */
#include "channel/channel.h"
#include "pipe/pipe.h"

#define PULL_PIECE ((uint64_t)1 << 20) /* bytes before other messages have their turn */
#define PULL_NEIGHBOURS 64             /* tensors of one system call */

enum part channel_pull(struct pipe *p, struct intake *t, const struct cma_peer *peer, uint64_t from,
                       int *ret_errno)
{
    const uint64_t len = channel_incoming(t)->len, left = len - t->got;
    const uint64_t n = left < PULL_PIECE ? left : PULL_PIECE;
    unsigned char *to = channel_target(t);

    if (to) {
        *ret_errno = cma_read(peer, to + t->got, from + t->got, n);
        if (*ret_errno)
            return PART_BAD;
        t->got += n;
        counter_add(&p->tensors.pulled, n);
        t->more = t->got < len;
        if (t->more)
            return PART_MISSING;
    }
    counter_add(&p->ep->count.tensors_pulled, to != NULL);
    return PART_THERE;
}

/* Tensors that are read together. */
struct neighbours {
    struct iovec to[PULL_NEIGHBOURS], from[PULL_NEIGHBOURS];
    size_t n;
    uint64_t bytes;
};

/* Finds them, from the tensor that is read next on. Returns the index behind the last. */
static uint32_t neighbours_find(struct neighbours *g, const struct arrival *a, int how)
{
    uint32_t i = a->tensor;

    g->n = 0;
    g->bytes = 0;
    for (; i < a->n_tensors && g->n < PULL_NEIGHBOURS; i++) {
        const struct incoming *in = &a->in[i];
        if (in->len == 0)
            continue;
        if (in->how != how || in->len > PULL_PIECE - g->bytes)
            break;
        g->to[g->n] = (struct iovec){ channel_target_at(a, i), (size_t)in->len };
        g->from[g->n++] = (struct iovec){ (void *)(uintptr_t)in->from, (size_t)in->len };
        g->bytes += in->len;
    }
    return i;
}

size_t channel_pull_neighbours(struct pipe *p, struct intake *t, const struct cma_peer *peer,
                               int how, int done)
{
    struct arrival *a = t->of;
    struct neighbours g;
    uint32_t end;

    if (t->got > 0 || !a->msg)
        return 0;
    end = neighbours_find(&g, a, how);
    if (g.n < 2 || cma_read_list(peer, g.to, g.from, g.n))
        return 0;
    for (uint32_t i = a->tensor; i < end; i++)
        if (a->in[i].len > 0)
            a->in[i].how = done;
    counter_add(&p->tensors.pulled, g.bytes);
    counter_add(&p->ep->count.tensors_pulled, g.n);
    return g.n;
}
