/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_message.c - the parts of a message, as they arrive. */
#include "channel/channel.h"
#include "cuda/link/link.h"
#include "pipe/pipe.h"
#include "pipe/pipe_send.h"
#include "wire/brief.h"
#include "wire/descriptor.h"
#include "wire/storage.h"

#include <stdlib.h>

/* From now on the bytes of this message are read and forgotten. */
static void message_skip(struct pipe *p, struct arrival *a, const tenrec_error *why)
{
    a->skipped = true;
    a->why = *why;
    a->n_begun = 0;
    if (a->msg) {
        a->n_begun =
            a->msg->payload_len < sizeof a->begun ? (uint32_t)a->msg->payload_len : sizeof a->begun;
        memcpy(a->begun, a->msg->payload, a->n_begun);
        a->msg->release(a->msg);
    }
    a->msg = NULL;
    pipe_announce_carry(p, NULL);
}

/* The devices of the sender and of the receiver. errors: EPROTOCOL (no channel was agreed for that)
 */
static tenrec_status message_read_devices(const struct pipe *p, const struct descriptor_tensor *t,
                                          uint32_t i, struct tenrec_device *source,
                                          struct tenrec_device *target, tenrec_error *err)
{
    *source = *target = (struct tenrec_device){ TENREC_CPU, 0 };
    if (t->on_host && p->terms.channel)
        return TENREC_OK;
    if (device_from_wire(&t->source, source) &&
        (!t->has_target || device_from_wire(&t->target, target))) {
        if (source->kind == TENREC_CPU && target->kind == TENREC_CPU
                ? p->terms.channel != NULL
                : p->devices.role && t->has_target)
            return TENREC_OK;
    }
    return tenrec_fail(err, TENREC_EPROTOCOL,
                       "tensor %u goes from %.*s:%d to %.*s:%d: no channel was agreed for that", i,
                       NOP_PRINT(t->source.type), t->source.index,
                       NOP_PRINT(t->has_target ? t->target.type : nop_text("none")),
                       t->has_target ? t->target.index : 0);
}

static tenrec_status message_take_tensor(struct pipe *p, const struct descriptor_tensor *t,
                                         uint32_t i, tenrec_error *err)
{
    struct arrival *a = &p->read.now;
    struct tenrec_device source, target;
    struct tenrec_tensor_desc *desc;
    tenrec_status st;
    tenrec_error why;

    st = message_read_devices(p, t, i, &source, &target, err);
    if (st)
        return st;
    a->in[i] = (struct incoming){ .len = t->length };
    a->carried[i] = (struct carried){ .bytes = t->length, .tensor = i };
    desc = a->msg ? tenrec_msg_tensor(a->msg, i) : NULL;
    if (desc) {
        desc->bytes = t->length;
        desc->source = source;
        desc->device = desc->target = target;
    }
    if (source.kind != TENREC_CPU || target.kind != TENREC_CPU) {
        a->in[i].on_device = true;
        return t->length ? link_announced(p, &a->arriving, a->n_tensors, i, t->metadata, t, err)
                         : TENREC_OK;
    }
    if (p->terms.channel->announced)
        st = p->terms.channel->announced(p, t->metadata, &a->in[i], desc, &why);
    if (st == TENREC_EPROTOCOL && err)
        *err = why;
    else if (st && !a->skipped)
        message_skip(p, a, &why);
    return st == TENREC_EPROTOCOL ? st : TENREC_OK;
}

/* Checks the limits that we announced to its sender (wire/handshake/identity.h). errors: ETOOBIG */
static tenrec_status message_check_limits(const struct pipe *p, const struct descriptor *d,
                                          tenrec_error *err)
{
    const struct tp_options *o = p->ep->options;
    const uint64_t bytes = d->payload_bytes + d->tensor_bytes;

    if (bytes > o->max_message)
        return tenrec_fail(err, TENREC_ETOOBIG, "a message of %llu bytes; max_message is %llu",
                           (unsigned long long)bytes, (unsigned long long)o->max_message);
    if (d->payload_len[3] > o->max_object)
        return tenrec_fail(
            err, TENREC_ETOOBIG, "a list of %u tensors in %llu bytes; max_object is %llu",
            d->n_tensors, (unsigned long long)d->payload_len[3], (unsigned long long)o->max_object);
    return TENREC_OK;
}

/* All frames of a message without tensors are there. */
static void message_end_plain(struct pipe *p, const struct plain *m)
{
    struct arrival *a = &p->read.now;

    a->type = m->type;
    a->id = m->id;
    p->conns.of[CONN_DESCRIPTOR]->pos += m->len;
    if (unlikely(p->read.waiting != NULL)) {
        a->n_tensors = 0;
        (void)arrival_settle(p);
    } else {
        message_end(p, a);
    }
}

bool message_plain(struct pipe *p, const struct plain *m)
{
    struct endpoint *ep = p->ep;
    struct arrival *a = &p->read.now;

    /* What is refused is read by the long way, which says why. */
    if (m->payload_len > ep->options->max_message ||
        (unlikely(p->budget.stranger) && pipe_announced(p, m->payload_len, NULL)))
        return false;
    a->msg = ep->host->msg_new(ep->self, m->payload_len, 0);
    if (!a->msg)
        return false;
    a->msg->type = m->type;
    a->msg->id = m->id;
    a->msg->flags |= p->marks;
    a->skipped = false;
    if (m->payload_len)
        memcpy(a->msg->payload, m->payload, m->payload_len);
    message_end_plain(p, m);
    return true;
}

void message_brief(struct pipe *p, const struct plain *m)
{
    const struct descriptor d = { .payload_bytes = m->payload_len, .payload_len = { 0 } };
    struct arrival *a = &p->read.now;
    tenrec_error why;

    if (message_plain(p, m))
        return;
    a->msg = NULL;
    if (!message_check_limits(p, &d, &why) && !pipe_announced(p, m->payload_len, &why))
        tenrec_fail(&why, TENREC_ENOMEM, "no memory for a message of %zu bytes", m->payload_len);
    message_skip(p, a, &why);
    a->n_begun = m->payload_len < sizeof a->begun ? (uint32_t)m->payload_len : sizeof a->begun;
    memcpy(a->begun, m->payload, a->n_begun);
    message_end_plain(p, m);
    /* The references in an answer wait at the callee for their arrival, or for the connection's
     * end. */
    if (why.code == TENREC_ENOMEM && p->outgoing)
        pipe_failf(p, TENREC_ENOMEM, 0, "an answer was dropped: %s", why.text);
}

/* The message that was announced, with room for its payload. errors: EAGAIN, ENOMEM, ETOOBIG */
static struct tenrec_msg *message_make(struct pipe *p, const struct descriptor *d,
                                       tenrec_error *err)
{
    const uint64_t bytes =
        d->payload_bytes + d->tensor_bytes + d->n_tensors * sizeof(struct tenrec_tensor_desc);
    struct endpoint *ep = p->ep;
    struct tenrec_msg *msg;

    if (message_check_limits(p, d, err) || pipe_announced(p, bytes, err))
        return NULL;
    msg = ep->host->msg_new(ep->self, p->read.len[2], d->n_tensors);
    if (!msg)
        tenrec_fail(err, TENREC_ENOMEM, "no memory for a message of %llu bytes and %u tensors",
                    (unsigned long long)p->read.len[2], d->n_tensors);
    return msg;
}

/* errors: ENOMEM, EAGAIN */
static tenrec_status arrival_grow(struct pipe *p, uint32_t n, tenrec_error *err)
{
    struct arrival *a = &p->read.now;
    struct incoming *in = realloc(a->in, n * sizeof *in);
    struct carried *carried = in ? realloc(a->carried, n * sizeof *carried) : NULL;

    if (in)
        a->in = in;
    if (!carried)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %u tensors", n);
    a->carried = carried;
    a->cap = n;
    return pipe_charge_reading(p, err);
}

/* The message of that descriptor, before its tensors. */
static tenrec_status message_announce(struct pipe *p, const struct descriptor *d, tenrec_error *err)
{
    struct reading *r = &p->read;
    struct arrival *a = &r->now;
    tenrec_error why;
    tenrec_status st;

    if (d->n_tensors > a->cap && (st = arrival_grow(p, d->n_tensors, err)) != TENREC_OK)
        return st;
    if (p->caller.claims)
        pipe_recognise(p);
    memcpy(r->len, d->payload_len, sizeof r->len);
    r->n_targetless = d->n_targetless;
    a->n_tensors = d->n_tensors;
    a->skipped = false;
    a->msg = message_make(p, d, &why);
    if (!a->msg)
        message_skip(p, a, &why);
    return TENREC_OK;
}

tenrec_status message_begin(struct pipe *p, const unsigned char *frame, size_t len,
                            tenrec_error *err)
{
    static const struct descriptor_limits limits = { DESCRIPTOR_AGENT_PAYLOADS,
                                                     MESSAGE_TENSORS_MAX };
    struct descriptor_tensor t;
    struct descriptor d;
    tenrec_status st = descriptor_read(frame, len, &limits, &d, err);

    if (st)
        return st;
    if (d.n_payloads != DESCRIPTOR_AGENT_PAYLOADS || d.payload_len[0] != 4 || d.payload_len[1] != 8)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "descriptor: expected the four payloads of an RPC message, type (4 "
                           "bytes), id (8), payload and tensor list; got %u",
                           d.n_payloads);
    st = message_announce(p, &d, err);
    for (uint32_t i = 0; i < d.n_tensors && !st; i++) {
        descriptor_next_tensor(&d, &t);
        st = message_take_tensor(p, &t, i, err);
    }
    return st;
}

/* The sender holds its tensors until their target devices are known. */
static void message_send_targets(struct pipe *p)
{
    uint32_t n = p->read.n_targetless;
    struct nop_device *device;
    unsigned char *buf;
    size_t len;

    if (p->conns.lacks_reply || !pipe_has_channel(p)) {
        pipe_failf(p, TENREC_EPROTOCOL, 0,
                   "sent a tensor without a target, although its capabilities rule that out");
        return;
    }
    device = malloc(n * sizeof *device);
    buf = malloc(DESCRIPTOR_REPLY_MAX(n));
    if (device && buf) {
        for (uint32_t i = 0; i < n; i++)
            device[i] = (struct nop_device){ nop_text("cpu"), 0 };
        len = descriptor_reply_write(buf, DESCRIPTOR_REPLY_MAX(n), device, n);
        if (pipe_send_object(p, CONN_REPLY, buf, len) == TENREC_OK)
            n = 0;
    }
    free(device);
    free(buf);
    if (n)
        pipe_failf(p, TENREC_ENOMEM, 0, "no memory for a DescriptorReply");
}

/* What views say is more than their storages hold may be copied whole: it counts, too. Of
 * tensors that share a storage the first counts it. */
static tenrec_status message_check_views(struct pipe *p, tenrec_error *err)
{
    const uint64_t max = p->ep->options->max_message;
    const struct tenrec_msg *msg = p->read.now.msg;
    uint64_t all = 0, more = 0;

    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        const struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);
        uint64_t n = storage_view_bytes(t), beyond = n > t->bytes ? n - t->bytes : 0;

        if (n > max || all > max - n)
            return tenrec_fail(err, TENREC_ETOOBIG,
                               "tensor %u: its elements take %llu bytes; max_message is %llu for "
                               "all tensors of a message",
                               i, (unsigned long long)n, (unsigned long long)max);
        all += t->same_storage ? beyond : n;
        more += beyond;
    }
    return more ? pipe_announced(p, more, err) : TENREC_OK;
}

void message_take_list(struct pipe *p, const unsigned char *frame, size_t len)
{
    struct arrival *a = &p->read.now;
    tenrec_error why;

    if (a->msg) {
        a->msg->type = a->type;
        a->msg->id = a->id;
        a->msg->flags |= p->marks;
    }
    if (a->msg && (message_read_list(p, frame, len, &why) || message_check_views(p, &why)))
        message_skip(p, a, &why);
    if (p->read.n_targetless)
        message_send_targets(p);
    a->placed = false;
    a->tensor = 0;
}

tenrec_status message_brief_tensors(struct pipe *p, const struct brief *b, tenrec_error *err)
{
    struct descriptor d = { .n_tensors = b->n,
                            .payload_bytes = b->plain.payload_len + b->list_len,
                            .payload_len = { 4, 8, b->plain.payload_len, b->list_len } };
    struct descriptor_tensor t = { .on_host = true, .has_target = true };
    struct arrival *a = &p->read.now;
    tenrec_status st;

    for (unsigned i = 0; i < b->n; i++)
        d.tensor_bytes += b->storage[i].bytes;
    st = message_announce(p, &d, err);
    for (uint32_t i = 0; i < b->n && !st; i++) {
        t.length = b->storage[i].bytes;
        t.metadata = b->storage[i].note;
        st = p->terms.channel
                 ? message_take_tensor(p, &t, i, err)
                 : tenrec_fail(err, TENREC_EPROTOCOL, "tensor %u: no channel was agreed for it", i);
    }
    if (st)
        return st;
    a->type = b->plain.type;
    a->id = b->plain.id;
    if (a->msg && b->plain.payload_len)
        memcpy(a->msg->payload, b->plain.payload, b->plain.payload_len);
    message_take_list(p, b->list, b->list_len);
    return TENREC_OK;
}

static tenrec_status message_place(struct pipe *p, struct tenrec_msg *msg, tenrec_error *err)
{
    if (!p->outgoing)
        msg->route = p->route;
    return p->ep->host->place(p->ep->self, p->from, msg, err);
}

void message_place_tensors(struct pipe *p, struct arrival *a)
{
    tenrec_error why;

    if (!a->placed && a->msg && a->n_tensors > 0 && message_place(p, a->msg, &why))
        message_skip(p, a, &why);
    a->placed = true;
}

bool message_rest(struct pipe *p)
{
    const size_t fixed = FRAME_HEAD + 4 + FRAME_HEAD + 8 + FRAME_HEAD;
    const struct reading *r = &p->read;
    struct arrival *a = &p->read.now;
    struct conn *c = p->conns.of[CONN_DESCRIPTOR];
    const unsigned char *at = c->buf + c->pos, *payload = at + fixed, *list;
    const size_t len = conn_buffered(c);

    if (len < fixed + FRAME_HEAD || len - fixed - FRAME_HEAD < r->len[2] ||
        len - fixed - FRAME_HEAD - (size_t)r->len[2] < r->len[3])
        return false;
    list = payload + r->len[2];
    if (get_le64(at) != 4 || get_le64(at + FRAME_HEAD + 4) != 8 ||
        get_le64(payload - FRAME_HEAD) != r->len[2] || get_le64(list) != r->len[3])
        return false;
    a->type = (int32_t)get_le32(at + FRAME_HEAD);
    a->id = (int64_t)get_le64(at + FRAME_HEAD + 4 + FRAME_HEAD);
    if (a->msg && r->len[2])
        memcpy(a->msg->payload, payload, (size_t)r->len[2]);
    message_take_list(p, list + FRAME_HEAD, (size_t)r->len[3]);
    c->pos += fixed + (size_t)r->len[2] + FRAME_HEAD + (size_t)r->len[3];
    return true;
}
