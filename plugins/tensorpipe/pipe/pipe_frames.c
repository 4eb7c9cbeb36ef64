/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_frames.c - the frames of messages, in the bytes that have arrived on the descriptor
 * connection. */
#include "channel/channel.h"
#include "pipe/pipe.h"
#include "wire/brief.h"

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
    r->front.head_got = FRAME_HEAD;
    r->front.got = 0;
    return PART_THERE;
}

/* To `to`; NULL: nowhere, it is skipped. */
static enum part take_body(struct pipe *p, int index, const char *what, void *to)
{
    struct intake *t = &p->read.front;
    const uint64_t len = p->read.len[index];
    enum part part = t->head_got ? PART_THERE : take_head(p, index, what);

    if (part != PART_THERE)
        return part;
    conn_take(p->conns.of[CONN_DESCRIPTOR], to, len, &t->got);
    if (t->got == len) {
        intake_next(t);
        return PART_THERE;
    }
    if (to) {
        t->lead[0] = (struct iovec){ (char *)to + t->got, (size_t)(len - t->got) };
        t->n_lead = 1;
    }
    return PART_MISSING;
}

/* That of a message that is skipped may be longer than max_object. */
static enum part take_list(struct pipe *p)
{
    const unsigned char *body = NULL;
    size_t len = 0;
    enum part part = p->read.now.msg ? announced_frame(p, 3, "tensor list", &body, &len)
                                     : take_body(p, 3, "tensor list", NULL);

    if (part != PART_THERE)
        return part;
    message_take_list(p, body, len);
    if (body)
        p->conns.of[CONN_DESCRIPTOR]->pos += FRAME_HEAD + len;
    return PART_THERE;
}

/* The tensors that follow their message. */
static enum part take_behind(struct pipe *p)
{
    struct intake *t = &p->read.front;
    struct arrival *a = &p->read.now;

    t->of = a;
    for (; a->tensor < a->n_tensors; a->tensor++, intake_next(t)) {
        const struct incoming *in = &a->in[a->tensor];
        enum part part;

        if (!in->len || !in->behind)
            continue;
        message_place_tensors(p, a);
        part = channel_take_frame(p, t, CONN_DESCRIPTOR, channel_target(t), in->len);
        if (part != PART_THERE)
            return part;
    }
    return PART_THERE;
}

static enum parsed parsed_of(enum part part)
{
    return part == PART_MISSING ? PARSED_ALL : PARSED_BAD;
}

/* Returns true if a brief message is next. */
static inline bool brief_is_next(const struct pipe *p, const struct conn *c)
{
    return p->terms.capabilities & IDENTITY_BRIEF_MESSAGES && conn_buffered(c) >= FRAME_HEAD &&
           brief_is(c->buf + c->pos);
}

/* PARSED_ALL: it was delivered, or the rest of it is missing (*ret_missing). */
static enum parsed parse_brief(struct pipe *p, struct conn *c, bool *ret_missing)
{
    const size_t len = brief_length(c->buf + c->pos);
    tenrec_error err;
    struct brief b;
    enum parsed may;

    if (!len) {
        pipe_failf(p, TENREC_EPROTOCOL, 0, "sent a brief message with a malformed head");
        return PARSED_BAD;
    }
    *ret_missing = conn_buffered(c) < len;
    if (*ret_missing) {
        if (conn_reserve(c, len))
            return PARSED_ALL;
        pipe_failf(p, TENREC_ENOMEM, 0, "no memory for a message of %zu bytes", len);
        return PARSED_BAD;
    }
    may = reading_may_begin(p);
    if (may != PARSED_ALL)
        return may;
    if (!brief_read(c->buf + c->pos, len, &b)) {
        pipe_failf(p, TENREC_EPROTOCOL, 0, "sent a brief message with malformed tensors");
        return PARSED_BAD;
    }
    if (!b.n) {
        message_brief(p, &b.plain);
        return PARSED_ALL;
    }
    if (message_brief_tensors(p, &b, &err)) {
        pipe_failf(p, err.code, 0, "%s", err.text);
        return PARSED_BAD;
    }
    c->pos += len;
    p->read.step = STEP_BEHIND;
    return PARSED_ALL;
}

/* Consumes all complete buffers of the descriptor connection. */
enum parsed reading_parse(struct pipe *p)
{
    struct reading *r = &p->read;
    struct conn *c = p->conns.of[CONN_DESCRIPTOR];
    const unsigned char *body;
    struct plain plain;
    enum parsed may;
    tenrec_error err;
    enum part part;
    size_t len;

    r->front.n_lead = 0;
    while (pipe_state(p) != PIPE_BROKEN) {
        switch (r->step) {
        case STEP_DESCRIPTOR:
            if (c->pos == c->end && (c->cap || conn_reserve(c, FRAME_HEAD)))
                return PARSED_ALL;
            if (unlikely(reading_is_behind(r, p->budget.stranger)))
                return PARSED_ALL;
            if (brief_is_next(p, c)) {
                bool missing;

                may = parse_brief(p, c, &missing);
                if (may != PARSED_ALL || missing)
                    return may;
                continue;
            }
            if (plain_read(c->buf + c->pos, c->end - c->pos, &plain)) {
                may = reading_may_begin(p);
                if (may != PARSED_ALL)
                    return may;
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
            may = reading_may_begin(p);
            if (may != PARSED_ALL)
                return may;
            if (message_begin(p, body, len, &err)) {
                pipe_failf(p, err.code, 0, "%s", err.text);
                return PARSED_BAD;
            }
            c->pos += FRAME_HEAD + len;
            r->step = message_rest(p) ? STEP_BEHIND : STEP_TYPE;
            continue;
        case STEP_TYPE:
            part = announced_frame(p, 0, "message type", &body, &len);
            if (part != PART_THERE)
                return parsed_of(part);
            r->now.type = (int32_t)get_le32(body);
            break;
        case STEP_ID:
            part = announced_frame(p, 1, "message id", &body, &len);
            if (part != PART_THERE)
                return parsed_of(part);
            r->now.id = (int64_t)get_le64(body);
            break;
        case STEP_PAYLOAD:
            part = take_body(p, 2, "payload", r->now.msg ? r->now.msg->payload : NULL);
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
        case STEP_BEHIND:
            part = take_behind(p);
            if (part != PART_THERE)
                return parsed_of(part);
            r->step = STEP_DESCRIPTOR;
            if (!arrival_settle(p))
                return PARSED_BAD;
            continue;
        }
        c->pos += FRAME_HEAD + len;
        r->step++;
    }
    return PARSED_BAD;
}
