/* SPDX-License-Identifier: Apache-2.0 */
/* channel_host.c - Tenrec's own channels for host memory, "tenrec_host" and
 * "tenrec_lanes".
 *
 * Each tensor takes the way that suits it, and the note beside it in the
 * descriptor says which:
 *
 *     none        a frame on the descriptor connection, behind the message's own:
 *                 one write sends all of it
 *     1 address   the receiver reads it out of our memory
 *     2 length    frames of that length (the last one is shorter), in turns on
 *                 the lanes. Where a lane is a ring both sides copy at once
 *     3 ...       the receiver maps it (shm_handoff.h)
 *
 * Lanes are the first connections of the channel: one of tenrec_host, as many as
 * the options say of tenrec_lanes, which is for TCP. The other connection of
 * tenrec_host is for control, both ways. Its frames begin with a byte that says
 * what they are:
 *
 *     PROBE    address, number: can you read this number there?
 *     PULLS    yes: from now on tensors may be announced by their address
 *     TAKEN    number, n: so many tensors from that one on, counted from 0 as they were
 *              announced so, were read
 *     REFUSED  number: it cannot be read, send it
 *     SENT     number, and the bytes of what was refused
 *
 * The loop thread reads it, but for SENT: the reader of the pipe, which reads on with no other
 * tensor before, takes over meanwhile. */
#include "channel/channel.h"
#include "channel/channels.h"
#include "pipe/pipe.h"

#include <errno.h>
#include <unistd.h>

#define CONTROL_MAX 24             /* bytes of a frame, but for what SENT brings */
#define NOTE_LEN (1 + 8)           /* bytes of a note */
#define STRIPE ((uint64_t)1 << 20) /* with several lanes */
#define NUMBERED (1 + 8)           /* bytes of one with a number */
#define TAKEN_LEN (NUMBERED + 8)
#define TOGETHER_MIN ((uint64_t)4096) /* smaller tensors cost less as a part of the message */

enum how { HOW_PULL = 1, HOW_LANES, HOW_MAPPED, HOW_SENT, HOW_PULLED };
enum control { PROBE = 1, PULLS = 2, TAKEN = 3, REFUSED = 4, SENT = 5 };

static enum conn_role control_of(const struct pipe *p)
{
    return (enum conn_role)(CONN_CHANNEL + p->terms.channel->data);
}

/* ---- sending ---- */

/* A tensor that fits into the ring needs no turns. Two processes that copy at the same time are
 * faster with a tensor larger than the caches, if two processors are free, and with threads that
 * spin instead of sleeping until the receiver has read. */
static bool is_pulled(const struct pipe *p, uint64_t len, uint64_t together)
{
    const struct endpoint *ep = p->ep;
    const bool alone = len > ep->options->inline_max && len >= ep->options->pull_min;

    if (!p->tensors.pulls || (!alone && (len < TOGETHER_MIN || together < ep->options->pull_min)))
        return false;
    return ep->one_cpu || (len <= ep->options->pull_max && ep->progress != PROGRESS_BUSY);
}

/* Bytes per turn and lane of a tensor that takes the lanes. */
static uint64_t stripe_of(const struct pipe *p, uint64_t len)
{
    return p->terms.channel->data == 1 ? len : STRIPE;
}

/* 0 for tensors that go another way. */
static unsigned host_stripes(const struct pipe *p, uint64_t len, uint64_t together)
{
    uint64_t stripe = stripe_of(p, len);

    if (len <= p->ep->options->inline_max || !pipe_has_channel(p) || is_pulled(p, len, together))
        return 0;
    return (unsigned)((len + stripe - 1) / stripe);
}

static unsigned host_segments(const struct pipe *p, const struct tenrec_tensor_desc *t,
                              uint64_t together)
{
    unsigned n = host_stripes(p, t->bytes, together);

    return n ? n : 1;
}

static unsigned send_stripes(struct pipe *p, struct send_request *request,
                             const struct tenrec_tensor_desc *t, struct segment *s, unsigned n,
                             struct descriptor_note *note)
{
    uint64_t stripe = stripe_of(p, t->bytes);

    for (unsigned i = 0; i < n; i++) {
        uint64_t at = (uint64_t)i * stripe, left = t->bytes - at;

        channel_put_frame(&s[i], request,
                          (enum conn_role)(CONN_CHANNEL + i % p->terms.channel->data),
                          (unsigned char *)t->data + at, left < stripe ? left : stripe);
    }
    note->len = NOTE_LEN;
    note->bytes[0] = HOW_LANES;
    put_le64(note->bytes + 1, stripe);
    return n;
}

static unsigned host_send(struct pipe *p, struct send_request *request,
                          const struct tenrec_tensor_desc *t, uint64_t together, struct segment *s,
                          struct descriptor_note *note)
{
    unsigned n = host_stripes(p, t->bytes, together);

    if (n)
        return send_stripes(p, request, t, s, n, note);
    if (!is_pulled(p, t->bytes, together)) {
        channel_put_frame(s, request, CONN_DESCRIPTOR, t->data, t->bytes);
        return 1;
    }
    note->len = NOTE_LEN;
    note->bytes[0] = HOW_PULL;
    put_le64(note->bytes + 1, (uintptr_t)t->data);
    s->request = request;
    s->on = control_of(p);
    s->awaited = true;
    request->parts++;
    /* In case it is refused; the number is put in then. */
    put_le64(s->head, NUMBERED + t->bytes);
    s->head[FRAME_HEAD] = SENT;
    s->iov[0] = (struct iovec){ s->head, FRAME_HEAD + NUMBERED };
    s->iov[1] = (struct iovec){ t->data, (size_t)t->bytes };
    return 1;
}

/* ---- receiving ---- */

/* The loop thread finds it out. */
static struct cma_peer puller_of(struct pipe *p)
{
    struct cma_peer peer;

    pthread_mutex_lock(&p->lock);
    peer = p->tensors.puller;
    pthread_mutex_unlock(&p->lock);
    return peer;
}

static tenrec_status host_announced(struct pipe *p, struct nop_bytes note, struct incoming *in,
                                    struct tenrec_tensor_desc *desc, tenrec_error *err)
{
    uint64_t value;

    if (note.len == 0) {
        in->behind = true;
        return TENREC_OK;
    }
    if (!pipe_has_channel(p))
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "descriptor: a tensor over connections that are not open");
    if (note.data[0] == HOW_MAPPED) {
        in->len = 0;
        return shm_handoff_arrived(p, note, desc, err);
    }
    value = note.len == NOTE_LEN ? get_le64(note.data + 1) : 0;
    if (note.len == NOTE_LEN && note.data[0] == HOW_PULL && puller_of(p).pid) {
        *in = (struct incoming){
            .len = in->len, .from = value, .number = p->tensors.n_pulls++, .how = HOW_PULL
        };
        return TENREC_OK;
    }
    if (note.len == NOTE_LEN && note.data[0] == HOW_LANES && value) {
        *in = (struct incoming){ .len = in->len, .number = value, .how = HOW_LANES };
        return TENREC_OK;
    }
    return tenrec_fail(err, TENREC_EPROTOCOL,
                       "descriptor: a tensor over a channel that was not agreed");
}

static bool control_tell(struct pipe *p, const unsigned char *body, size_t len)
{
    if (p->services->send_object(p, control_of(p), body, len) == TENREC_OK)
        return true;
    p->services->failf(p, TENREC_ENOMEM, 0, "no memory for a control frame");
    return false;
}

static bool control_tell_taken(struct pipe *p, uint64_t number, uint64_t n)
{
    unsigned char body[TAKEN_LEN] = { TAKEN };

    put_le64(body + 1, number);
    put_le64(body + NUMBERED, n);
    return control_tell(p, body, sizeof body);
}

static bool control_tell_refused(struct pipe *p, uint64_t number)
{
    unsigned char body[NUMBERED] = { REFUSED };

    put_le64(body + 1, number);
    return control_tell(p, body, sizeof body);
}

/* "Can you read this?" Nothing is said when the answer is no. */
static void control_probe(struct pipe *p, const unsigned char *body)
{
    const unsigned char yes = PULLS;
    uint64_t word = 0;
    struct cma_peer peer;

    if (!p->ep->channels->pulls || !p->remote.pid || p->tensors.puller.pid)
        return;
    peer = cma_beside(p->remote.pid, p->conns.of[CONN_DESCRIPTOR]->source.fd);
    if (cma_read(&peer, &word, get_le64(body + 1), sizeof word) || word != get_le64(body + 9))
        return;
    pthread_mutex_lock(&p->lock);
    p->tensors.puller = peer;
    pthread_mutex_unlock(&p->lock);
    control_tell(p, &yes, 1);
}

static bool control_handle(struct pipe *p, const unsigned char *body, size_t len)
{
    bool known = false;

    switch (len ? body[0] : 0) {
    case PROBE:
        known = len == 17;
        if (known)
            control_probe(p, body);
        break;
    case PULLS:
        known = len == 1 && p->tensors.probe; /* an answer to nothing else */
        pthread_mutex_lock(&p->lock);
        p->tensors.pulls = p->ep->channels->pulls;
        pthread_mutex_unlock(&p->lock);
        break;
    case TAKEN:
        known = len == TAKEN_LEN &&
                p->services->tensors_taken(p, get_le64(body + 1), get_le64(body + NUMBERED));
        break;
    case REFUSED:
        known = len == NUMBERED && p->services->tensor_refused(p, get_le64(body + 1));
        break;
    default:
        break;
    }
    if (!known)
        p->services->failf(p, TENREC_EPROTOCOL, 0, "sent a malformed control frame");
    return known;
}

/* Reads the control connection up to the bytes that were refused. */
static enum part find_sent(struct pipe *p, struct conn *c, const struct incoming *in)
{
    const unsigned char *body;
    size_t len;

    while (conn_buffered(c) > FRAME_HEAD && c->buf[c->pos + FRAME_HEAD] != SENT) {
        switch (conn_frame(c, CONTROL_MAX, &body, &len)) {
        case FRAME_WHOLE:
            if (!control_handle(p, body, len))
                return PART_BAD;
            c->pos += FRAME_HEAD + len;
            continue;
        case FRAME_PARTIAL:
            return PART_MISSING;
        default:
            p->services->failf(p, TENREC_EPROTOCOL, 0, "sent a control frame of %zu bytes", len);
            return PART_BAD;
        }
    }
    if (conn_buffered(c) < FRAME_HEAD + NUMBERED)
        return PART_MISSING;
    body = c->buf + c->pos + FRAME_HEAD;
    if (get_le64(c->buf + c->pos) != NUMBERED + in->len || get_le64(body + 1) != in->number) {
        p->services->failf(p, TENREC_EPROTOCOL, 0,
                           "sent other bytes than those of the refused tensor");
        return PART_BAD;
    }
    c->pos += FRAME_HEAD + NUMBERED;
    return PART_THERE;
}

static enum part take_sent(struct pipe *p, struct intake *t)
{
    struct incoming *in = channel_incoming(t);
    struct conn *c = p->conns.of[control_of(p)];
    unsigned char *to = channel_target(t);

    t->want = control_of(p);
    if (!t->head_got) {
        enum part part = find_sent(p, c, in);

        if (part != PART_THERE)
            return part;
        t->head_got = FRAME_HEAD;
    }
    conn_take(c, to, in->len, &t->got);
    if (t->got < in->len) {
        if (to)
            t->lead[t->n_lead++] = (struct iovec){ to + t->got, (size_t)(in->len - t->got) };
        return PART_MISSING;
    }
    p->services->lend_side(p, false);
    return PART_THERE;
}

/* Out of the sender's memory, or when that fails, through the connection. */
static enum part host_pull(struct pipe *p, struct intake *t)
{
    struct incoming *in = channel_incoming(t);
    struct cma_peer peer = puller_of(p);
    const size_t together = channel_pull_neighbours(p, t, &peer, HOW_PULL, HOW_PULLED);
    enum part part = PART_THERE;
    int e = 0;

    if (together == 0)
        part = channel_pull(p, t, &peer, in->from, &e);
    if (part == PART_MISSING)
        return part;
    if (part == PART_THERE)
        return control_tell_taken(p, in->number, together ? together : 1) ? PART_THERE : PART_BAD;
    if (e == ESRCH) {
        p->services->failf(p, TENREC_EPEER_LOST, e, "cannot read a tensor");
        return PART_BAD;
    }
    endpoint_log(p->ep, TENREC_LOG_WARN,
                 "cannot read a tensor of %llu bytes from process %d (%s): it is asked for instead",
                 (unsigned long long)in->len, (int)peer.pid, strerror(e));
    counter_add(&p->ep->count.pulls_refused, 1);
    in->how = HOW_SENT;
    t->got = 0;
    p->services->lend_side(p, true);
    return control_tell_refused(p, in->number) ? take_sent(p, t) : PART_BAD;
}

/* in->number: the length of a stripe, in->from: how far the ones before reach. */
static enum part take_stripes(struct pipe *p, struct intake *t)
{
    struct incoming *in = channel_incoming(t);
    unsigned char *to = channel_target(t);

    while (in->from < in->len) {
        uint64_t left = in->len - in->from, n = left < in->number ? left : in->number;
        unsigned lane = (unsigned)(in->from / in->number % p->terms.channel->data);
        enum part part = channel_take_frame(p, t, (enum conn_role)(CONN_CHANNEL + lane),
                                            to ? to + in->from : NULL, n);

        if (part != PART_THERE)
            return part;
        in->from += n;
        t->head_got = 0;
        t->got = 0;
    }
    return PART_THERE;
}

static enum part host_receive(struct pipe *p, struct intake *t)
{
    switch ((enum how)channel_incoming(t)->how) {
    case HOW_PULL:
        return host_pull(p, t);
    case HOW_PULLED:
        return PART_THERE;
    case HOW_SENT:
        return take_sent(p, t);
    default:
        return take_stripes(p, t);
    }
}

/* ---- control ---- */

/* Copies the next frame. Returns false if there is none, or the reader of the pipe reads these. */
static bool control_next(struct pipe *p, struct conn *c, unsigned char ret[CONTROL_MAX],
                         size_t *ret_len)
{
    const unsigned char *body;
    bool there;

    pthread_mutex_lock(&p->conns.side_lock);
    there =
        !atomic_load(&p->conns.side_lent) && channel_next_frame(p, c, CONTROL_MAX, &body, ret_len);
    if (there) {
        memcpy(ret, body, *ret_len);
        c->pos += FRAME_HEAD + *ret_len;
    }
    pthread_mutex_unlock(&p->conns.side_lock);
    return there;
}

static void host_arrived(struct pipe *p, struct conn *c)
{
    unsigned char body[CONTROL_MAX];
    size_t len;

    while (control_next(p, c, body, &len) && control_handle(p, body, len))
        continue;
}

static void host_established(struct pipe *p)
{
    unsigned char body[17] = { PROBE };

    p->tensors.allows = p->ep->channels->pulls && p->remote.pid && cma_allow(p->remote.pid);
    if (!p->tensors.allows)
        return;
    p->tensors.probe = clock_now_ns() ^ (uintptr_t)p;
    put_le64(body + 1, (uintptr_t)&p->tensors.probe);
    put_le64(body + 9, p->tensors.probe);
    control_tell(p, body, sizeof body);
}

const struct channel channel_host = {
    .name = "tenrec_host",
    .connections = 2,
    .data = 1,
    .deferrable = true,
    .maps = HOW_MAPPED,
    .segments = host_segments,
    .send = host_send,
    .announced = host_announced,
    .receive = host_receive,
    .arrived = host_arrived,
    .established = host_established,
};

/* TCP cannot read a peer's memory: no control is needed. */
const struct channel channel_lanes = {
    .name = "tenrec_lanes",
    .deferrable = true,
    .segments = host_segments,
    .send = host_send,
    .announced = host_announced,
    .receive = host_receive,
};
