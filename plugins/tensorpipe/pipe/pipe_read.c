/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_read.c - finds messages in the arriving bytes.
 *
 * One system call reads what there is; then every message that is whole is
 * delivered, before the next one. Large payloads and tensors are read straight
 * to where they belong (intake.lead) with the buffer behind them, so that the
 * call that brings their end brings the beginning of the next message too. */
#include "pipe/pipe.h"
#include "pipe/pipe_send.h"

#include <errno.h>

#define READ_ROUND 32 /* system calls of one pipe before others have their turn */

/* Accounts for what was read past the buffer. */
static void lead_filled(struct intake *t, size_t n)
{
    for (int i = 0; i < t->n_lead && n; i++) {
        size_t part = n < t->lead[i].iov_len ? n : t->lead[i].iov_len;

        if (t->head_got < FRAME_HEAD)
            t->head_got += part;
        else
            t->got += part;
        n -= part;
    }
}

/* Whatever the connections of the tensors still have is read before the end of the other one
 * counts.
 */
static enum read_result read_end(struct pipe *p, struct intake *t, int os_errno)
{
    if (t == &p->read.front && p->read.waiting) {
        t->dry = t->ended = true;
        return READ_NOTHING;
    }
    if (os_errno)
        pipe_failf(p, TENREC_EPEER_LOST, os_errno, "connection lost");
    else
        pipe_failf(p, TENREC_EPEER_LOST, 0, "connection closed by the peer");
    return READ_END;
}

#define INLINE __attribute__((always_inline)) static inline

/* Reads once. READ_SOME: parse the received bytes. Inline: see conn_read. drain: a short read does
 * not show that there is no more. */
INLINE enum read_result read_once(struct pipe *p, struct intake *t, bool wait, bool drain)
{
    struct conn *c = p->conns.of[t->want];
    bool is_short = false;
    int e;
    ssize_t n = conn_read(c, t->lead, t->n_lead, wait, &is_short, &e);

    if (n == 0) {
        t->dry = true;
        return READ_NOTHING;
    }
    if (n < 0)
        return read_end(p, t, e);
    t->dry = is_short && !drain;
    if (t->n_lead)
        lead_filled(t, (size_t)n);
    return READ_SOME;
}

static bool front_is_dry(const struct pipe *p)
{
    return p->read.front.dry || reading_is_behind(&p->read, p->budget.stranger);
}

static bool back_is_dry(const struct pipe *p)
{
    return !p->read.waiting || (p->read.back.dry && !p->read.back.more);
}

/* Reads once from each connection that may have more. */
static enum read_result read_more(struct pipe *p, bool drain)
{
    struct reading *r = &p->read;
    enum read_result front = READ_NOTHING, back = READ_NOTHING;

    if (!front_is_dry(p))
        front = read_once(p, &r->front, false, drain);
    if (front == READ_END)
        return READ_END;
    if (r->back.more)
        return READ_SOME;
    if (!back_is_dry(p))
        back = read_once(p, &r->back, false, drain);
    return back == READ_NOTHING ? front : back;
}

/* The turn ended with small messages: however many they are, tensors go on. */
static enum read_result read_back(struct pipe *p)
{
    if (back_is_dry(p) || p->read.back.more)
        return READ_PAUSED;
    if (read_once(p, &p->read.back, false, false) == READ_END || arrival_fill(p) == PARSED_BAD)
        return READ_END;
    return READ_PAUSED;
}

/* Parses, and reads and parses on while there is more. A function of its own, so that an empty poll
 * saves no registers for it. */
__attribute__((noinline)) static enum read_result read_on(struct pipe *p, bool came, bool drain)
{
    struct reading *r = &p->read;

    for (int round = 0;; round++) {
        enum parsed front = reading_parse(p), back = front;
        const bool behind = reading_is_behind(r, p->budget.stranger);
        enum read_result result;

        if (r->waiting && (front == PARSED_ALL || front == PARSED_TURN))
            back = arrival_fill(p);
        if (front == PARSED_BAD || back == PARSED_BAD)
            return READ_END;
        if (front == PARSED_PAUSED || back == PARSED_PAUSED) {
            r->unparsed = true;
            return READ_PAUSED;
        }
        if (front == PARSED_TURN) {
            r->unparsed = r->more = true;
            return read_back(p);
        }
        if (behind && !reading_is_behind(r, p->budget.stranger))
            continue;
        if (r->front.ended && !r->waiting)
            return read_end(p, &r->front, 0);
        if (front_is_dry(p) && back_is_dry(p))
            break;
        if (round == READ_ROUND || reading_turn_is_over(r)) {
            r->more = true;
            break;
        }
        result = read_more(p, drain);
        if (result == READ_END)
            return READ_END;
        came |= result == READ_SOME;
    }
    return came ? READ_SOME : READ_NOTHING;
}

enum read_result pipe_read(struct pipe *p, enum read_how how)
{
    struct reading *r = &p->read;
    enum read_result result = READ_NOTHING;
    bool came = r->unparsed;
    struct batch batch;

    r->front.dry = r->front.ended;
    r->back.dry = r->more = false;
    /* A spinning thread mostly finds nothing here. */
    if (!r->unparsed && !front_is_dry(p)) {
        result = read_once(p, &r->front, how == READ_WAITING && !r->waiting, how == READ_DRAIN);
        if (result == READ_END || (result == READ_NOTHING && !r->waiting))
            return result;
        came = result == READ_SOME;
    }
    r->unparsed = false;
    r->turn_messages = 0;
    r->turn_ns = 0;
    batch_begin(&batch, p);
    result = read_on(p, came, how == READ_DRAIN);
    batch_end(&batch);
    if (r->more && !p->outgoing)
        pipe_post(p, &r->task);
    return result;
}
