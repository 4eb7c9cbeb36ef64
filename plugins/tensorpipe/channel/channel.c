/* SPDX-License-Identifier: Apache-2.0 */
/* channel.c - what channels have in common: frames that hold a tensor. */
#include "channel/channel.h"
#include "pipe/pipe.h"
#include "wire/storage.h"

struct incoming *channel_incoming(const struct intake *t)
{
    return &t->of->in[t->of->tensor];
}

void *channel_target_at(const struct arrival *a, uint32_t i)
{
    return a->msg ? tenrec_msg_tensor(a->msg, a->carried[i].tensor)->data : NULL;
}

void *channel_target(const struct intake *t)
{
    return channel_target_at(t->of, t->of->tensor);
}

static void take_head(struct conn *c, struct intake *t)
{
    size_t n = conn_buffered(c);

    if (n > FRAME_HEAD - t->head_got)
        n = FRAME_HEAD - t->head_got;
    if (!n)
        return;
    memcpy(t->head + t->head_got, c->buf + c->pos, n);
    c->pos += n;
    t->head_got += n;
}

/* The length is known, so head and body can be read with one system call that
 * skips the buffer. */
enum part channel_take_frame(struct pipe *p, struct intake *t, enum conn_role from, void *to,
                             uint64_t len)
{
    struct conn *c = p->conns.of[from];

    t->want = from;
    take_head(c, t);
    if (t->head_got == FRAME_HEAD) {
        if (get_le64(t->head) != len) {
            p->services->failf(p, TENREC_EPROTOCOL, 0,
                               "sent a tensor of %llu bytes after announcing %llu",
                               (unsigned long long)get_le64(t->head), (unsigned long long)len);
            return PART_BAD;
        }
        conn_take(c, to, len, &t->got);
        if (t->got == len)
            return PART_THERE;
    }
    if (t->head_got < FRAME_HEAD)
        t->lead[t->n_lead++] = (struct iovec){ t->head + t->head_got, FRAME_HEAD - t->head_got };
    /* Without a destination the rest of the head is read first, alone. */
    if (to)
        t->lead[t->n_lead++] =
            (struct iovec){ (unsigned char *)to + t->got, (size_t)(len - t->got) };
    return PART_MISSING;
}

bool channel_next_frame(struct pipe *p, struct conn *c, size_t max, const unsigned char **ret_body,
                        size_t *ret_len)
{
    enum frame frame;
    bool is_short;
    ssize_t n;
    int e;

    while ((frame = conn_frame(c, max, ret_body, ret_len)) == FRAME_PARTIAL) {
        n = conn_read(c, NULL, 0, false, &is_short, &e);
        if (n < 0)
            p->services->failf(p, TENREC_EPEER_LOST, e,
                               e ? "connection lost" : "connection closed by the peer");
        if (n <= 0)
            return false;
    }
    if (frame == FRAME_TOO_BIG)
        p->services->failf(p, TENREC_EPROTOCOL, 0,
                           "sent %zu bytes where channel \"%s\" has %zu at most", *ret_len,
                           p->terms.channel->name, max);
    else if (frame == FRAME_NO_MEMORY)
        p->services->failf(p, TENREC_ENOMEM, 0, "no memory for channel \"%s\"",
                           p->terms.channel->name);
    return frame == FRAME_WHOLE;
}

unsigned channel_one_segment(const struct pipe *p, const struct tenrec_tensor_desc *t,
                             uint64_t together)
{
    (void)p;
    (void)t;
    (void)together;
    return 1;
}

void channel_put_frame(struct segment *s, struct send_request *request, enum conn_role on,
                       void *data, uint64_t len)
{
    s->request = request;
    s->on = on;
    put_le64(s->head, len);
    s->iov[0] = (struct iovec){ s->head, FRAME_HEAD };
    s->iov[1] = (struct iovec){ data, (size_t)len };
    s->n = 2;
    request->parts++;
}
