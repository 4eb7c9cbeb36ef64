/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_read.c - finds messages in the arriving bytes.
 *
 * One system call reads what there is; then every message that is whole is
 * delivered, before the next one. Large payloads and tensors are read straight
 * to where they belong (reading.lead) with the buffer behind them, so that the
 * call that brings their end brings the beginning of the next message too. */
#include "channel/channel.h"
#include "cuda/link/link.h"
#include "pipe/pipe.h"
#include "pipe/pipe_send.h"
#include "wire/plain.h"

#include <errno.h>
#include <stdlib.h>

/* One pipe has so many system calls, or so much time, before others have their turn: functions that
 * run on this thread may take long. */
enum { READ_ROUND = 32, READ_TURN_NS = 5000000 };

enum parsed { PARSED_ALL, PARSED_PAUSED, PARSED_BAD };

void pipe_read_finish(struct pipe *p)
{
    struct reading *r = &p->read;

    if (r->msg)
        r->msg->release(r->msg);
    link_drop_arriving(r->arriving);
    free(r->in);
    free(r->carried);
}

/* A frame of at most `max` bytes, as a whole. */
static enum part whole_frame(struct pipe *p, uint64_t max, const char *what,
                             const unsigned char **ret_body, size_t *ret_len)
{
    switch (conn_frame(p->conns.of[CONN_DESCRIPTOR], max, ret_body, ret_len)) {
    case FRAME_WHOLE:
        return PART_THERE;
    case FRAME_PARTIAL:
        return PART_MISSING;
    case FRAME_TOO_BIG:
        pipe_failf(p, TENREC_EPROTOCOL, 0, "sent a %s of %zu bytes; the limit is %llu", what,
                   *ret_len, (unsigned long long)max);
        return PART_BAD;
    case FRAME_NO_MEMORY:
        pipe_failf(p, TENREC_ENOMEM, 0, "no memory for a %s of %zu bytes", what, *ret_len);
        return PART_BAD;
    }
    return PART_BAD;
}

/* A payload's frame, which must have the length that was announced. */
static enum part announced_frame(struct pipe *p, int index, const char *what,
                                 const unsigned char **ret_body, size_t *ret_len)
{
    enum part part = whole_frame(p, p->read.len[index], what, ret_body, ret_len);

    if (part != PART_THERE || *ret_len == p->read.len[index])
        return part;
    pipe_failf(p, TENREC_EPROTOCOL, 0, "sent a %s of %zu bytes after announcing %llu", what,
               *ret_len, (unsigned long long)p->read.len[index]);
    return PART_BAD;
}

/* The head of a frame whose body need not be in the buffer as a whole. */
static enum part take_head(struct pipe *p, int index, const char *what)
{
    struct reading *r = &p->read;
    struct conn *c = p->conns.of[CONN_DESCRIPTOR];
    uint64_t len;

    if (conn_buffered(c) < FRAME_HEAD) {
        if (conn_reserve(c, FRAME_HEAD))
            return PART_MISSING;
        pipe_failf(p, TENREC_ENOMEM, 0, "no memory for a %s", what);
        return PART_BAD;
    }
    len = get_le64(c->buf + c->pos);
    if (len != r->len[index]) {
        pipe_failf(p, TENREC_EPROTOCOL, 0, "sent a %s of %llu bytes after announcing %llu", what,
                   (unsigned long long)len, (unsigned long long)r->len[index]);
        return PART_BAD;
    }
    c->pos += FRAME_HEAD;
    r->in_body = true;
    r->got = 0;
    return PART_THERE;
}

/* To `to`; NULL: nowhere, it is skipped. */
static enum part take_body(struct pipe *p, int index, const char *what, void *to)
{
    struct reading *r = &p->read;
    const uint64_t len = r->len[index];
    enum part part = r->in_body ? PART_THERE : take_head(p, index, what);

    if (part != PART_THERE)
        return part;
    conn_take(p->conns.of[CONN_DESCRIPTOR], to, len, &r->got);
    if (r->got == len) {
        r->in_body = false;
        return PART_THERE;
    }
    if (to) {
        r->lead[0] = (struct iovec){ (char *)to + r->got, (size_t)(len - r->got) };
        r->n_lead = 1;
    }
    return PART_MISSING;
}

/* That of a message that is skipped may be longer than max_object. */
static enum part take_list(struct pipe *p)
{
    const unsigned char *body = NULL;
    size_t len = 0;
    enum part part = p->read.msg ? announced_frame(p, 3, "tensor list", &body, &len)
                                 : take_body(p, 3, "tensor list", NULL);

    if (part != PART_THERE)
        return part;
    message_place_tensors(p, body, len);
    if (body)
        p->conns.of[CONN_DESCRIPTOR]->pos += FRAME_HEAD + len;
    return PART_THERE;
}

static enum part take_tensors(struct pipe *p)
{
    struct reading *r = &p->read;

    while (r->tensor < r->n_tensors) {
        enum part part;

        if (r->in[r->tensor].len && !r->in[r->tensor].on_device) {
            part = p->terms.channel->receive(p);
            if (part != PART_THERE)
                return part;
        }
        r->tensor++;
        r->head_got = 0;
        r->got = 0;
    }
    return PART_THERE;
}

/* Accounts for what was read past the buffer. */
static void lead_filled(struct reading *r, size_t n)
{
    for (int i = 0; i < r->n_lead && n; i++) {
        size_t part = n < r->lead[i].iov_len ? n : r->lead[i].iov_len;

        if (r->step == STEP_TENSORS && r->head_got < FRAME_HEAD)
            r->head_got += part;
        else
            r->got += part;
        n -= part;
    }
}

/* Surely: then the writer has the pipe read again once it is half empty. */
static bool queue_is_full(struct pipe *p)
{
    bool full;

    pthread_mutex_lock(&p->lock);
    full = pipe_queue_is_full(p);
    p->queue.full = full;
    pthread_mutex_unlock(&p->lock);
    return full;
}

static bool turn_is_over(struct reading *r)
{
    const uint64_t now = clock_now_ns();

    if (!r->turn_ns)
        r->turn_ns = now;
    return now - r->turn_ns > READ_TURN_NS;
}

/* Returns true if the next message has to wait for the next turn. Reads the clock at each power of
 * two, as the messages of a full buffer take less time than that each. */
static bool message_waits(struct reading *r)
{
    const unsigned n = ++r->turn_messages;

    return n > 1 && !(n & (n - 1)) && turn_is_over(r);
}

/* Returns true if the next request of an incoming pipe may be read. */
static bool may_go_on(struct pipe *p)
{
    struct endpoint *ep = p->ep;

    if (atomic_load_explicit(&p->queue.bytes, memory_order_relaxed) >
            ep->options->max_queued_bytes &&
        queue_is_full(p))
        return false;
    if (message_waits(&p->read)) {
        pipe_post(p, &p->read.task);
        return false;
    }
    if (ep->host->accepts(ep->self))
        return true;
    /* Says so first and asks again: else a resume in between were lost. */
    atomic_store(&p->read.paused, true);
    if (!ep->host->accepts(ep->self))
        return false;
    atomic_store(&p->read.paused, false);
    return true;
}

static enum parsed parsed_of(enum part part)
{
    return part == PART_MISSING ? PARSED_ALL : PARSED_BAD;
}

/* Consumes all complete buffers. */
static enum parsed read_parse(struct pipe *p)
{
    struct reading *r = &p->read;
    struct conn *c = p->conns.of[CONN_DESCRIPTOR];
    const unsigned char *body;
    struct plain plain;
    tenrec_error err;
    enum part part;
    size_t len;

    r->n_lead = 0;
    while (pipe_state(p) != PIPE_BROKEN) {
        r->want = CONN_DESCRIPTOR;
        switch (r->step) {
        case STEP_DESCRIPTOR:
            if (c->pos == c->end && (c->cap || conn_reserve(c, FRAME_HEAD)))
                return PARSED_ALL;
            if (plain_read(c->buf + c->pos, c->end - c->pos, &plain)) {
                if (!p->outgoing && !may_go_on(p))
                    return PARSED_PAUSED;
                if (message_plain(p, &plain))
                    continue;
            }
            part = whole_frame(p, p->ep->options->max_object, "descriptor", &body, &len);
            if (part == PART_MISSING && pipe_charge_reading(p, &err)) {
                pipe_failf(p, err.code, 0, "%s", err.text);
                return PARSED_BAD;
            }
            if (part != PART_THERE)
                return parsed_of(part);
            if (!p->outgoing && !may_go_on(p))
                return PARSED_PAUSED;
            if (message_begin(p, body, len, &err)) {
                pipe_failf(p, err.code, 0, "%s", err.text);
                return PARSED_BAD;
            }
            c->pos += FRAME_HEAD + len;
            r->step = message_rest(p) ? STEP_TENSORS : STEP_TYPE;
            continue;
        case STEP_TYPE:
            part = announced_frame(p, 0, "message type", &body, &len);
            if (part != PART_THERE)
                return parsed_of(part);
            r->type = (int32_t)get_le32(body);
            break;
        case STEP_ID:
            part = announced_frame(p, 1, "message id", &body, &len);
            if (part != PART_THERE)
                return parsed_of(part);
            r->id = (int64_t)get_le64(body);
            break;
        case STEP_PAYLOAD:
            part = take_body(p, 2, "payload", r->msg ? r->msg->payload : NULL);
            if (part != PART_THERE)
                return parsed_of(part);
            r->step++;
            continue;
        case STEP_LIST:
            part = take_list(p);
            if (part != PART_THERE)
                return parsed_of(part);
            r->step++;
            continue;
        case STEP_TENSORS:
            part = take_tensors(p);
            if (part != PART_THERE)
                return parsed_of(part);
            r->step = STEP_DESCRIPTOR;
            message_end(p);
            continue;
        }
        c->pos += FRAME_HEAD + len;
        r->step++;
    }
    return PARSED_BAD;
}

#define INLINE __attribute__((always_inline)) static inline

/* Reads once. READ_SOME: parse the received bytes. Inline: see conn_read. */
INLINE enum read_result read_once(struct pipe *p, bool wait, bool *ret_short)
{
    struct reading *r = &p->read;
    struct conn *c = p->conns.of[r->want];
    int e;
    ssize_t n = conn_read(c, r->lead, r->n_lead, wait, ret_short, &e);

    if (n == 0)
        return READ_NOTHING;
    if (n < 0) {
        if (e)
            pipe_failf(p, TENREC_EPEER_LOST, e, "connection lost");
        else
            pipe_failf(p, TENREC_EPEER_LOST, 0, "connection closed by the peer");
        return READ_END;
    }
    if (r->n_lead)
        lead_filled(r, (size_t)n);
    return READ_SOME;
}

/* Parses, and reads and parses on while there is more. A function of its own, so that an empty poll
 * saves no registers for it. */
__attribute__((noinline)) static enum read_result read_on(struct pipe *p, bool is_short, bool drain)
{
    struct reading *r = &p->read;

    for (int round = 0;; round++) {
        enum conn_role from = r->want;
        enum parsed parsed = read_parse(p);
        enum read_result result;

        if (parsed == PARSED_BAD)
            return READ_END;
        if (parsed == PARSED_PAUSED) {
            r->unparsed = true;
            return READ_PAUSED;
        }
        if (is_short && from == r->want && !drain)
            return READ_SOME;
        if (round == READ_ROUND || turn_is_over(r)) {
            pipe_post(p, &p->read.task);
            return READ_SOME;
        }
        result = read_once(p, false, &is_short);
        if (result != READ_SOME)
            return result == READ_NOTHING ? READ_SOME : result;
    }
}

enum read_result pipe_read(struct pipe *p, enum read_how how)
{
    bool is_short = false;
    enum read_result result;
    struct batch batch;

    /* A spinning thread mostly finds nothing here. */
    if (!p->read.unparsed) {
        result = read_once(p, how == READ_WAITING, &is_short);
        if (result != READ_SOME)
            return result;
    }
    p->read.unparsed = false;
    p->read.turn_messages = 0;
    p->read.turn_ns = 0;
    batch_begin(&batch, p);
    result = read_on(p, is_short, how == READ_DRAIN);
    batch_end(&batch);
    return result;
}
