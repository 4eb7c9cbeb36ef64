/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_arrival.c - messages that wait for their tensors.
 *
 * A tensor has a connection of the channel, or comes out of the sender's memory, so the descriptor
 * connection goes on meanwhile: small messages do not wait for the tensors of others. The tensors
 * of one pipe come in the order of their messages, one after the other. */
#include "channel/channel.h"
#include "cuda/link/link.h"
#include "pipe/pipe.h"
#include "wire/storage.h"

#include <stdlib.h>

static bool tensor_comes(const struct incoming *in)
{
    return in->len && !in->on_device && !in->behind;
}

/* The link takes messages in their order. */
static bool arrival_keeps_order(const struct arrival *a)
{
    return a->arriving || message_keeps_order(a->type);
}

/* Returns true if tensors are to come, or the message must not overtake others. */
static bool arrival_waits(const struct reading *r)
{
    const struct arrival *a = &r->now;

    for (uint32_t i = 0; i < a->n_tensors; i++)
        if (tensor_comes(&a->in[i]))
            return true;
    return r->n_waiting && arrival_keeps_order(a);
}

/* What a message holds while it waits, with tensors that have memory. */
static uint64_t arrival_size(const struct arrival *a)
{
    uint64_t n = sizeof *a + a->cap * (sizeof *a->in + sizeof *a->carried);

    if (!a->msg)
        return n;
    n += a->msg->payload_len + a->msg->n_tensors * (uint64_t)a->msg->tensor_size;
    for (uint32_t i = 0; a->placed && i < a->n_tensors; i++)
        n += a->in[i].len;
    return n;
}

static void arrival_free(struct arrival *a)
{
    if (a->msg)
        a->msg->release(a->msg);
    link_drop_arriving(a->arriving);
    free(a->in);
    free(a->carried);
}

void pipe_read_finish(struct pipe *p)
{
    struct reading *r = &p->read;
    struct arrival *next;

    arrival_free(&r->now);
    for (struct arrival *a = r->waiting; a; a = next) {
        next = a->next;
        arrival_free(a);
        free(a);
    }
    if (r->spare)
        arrival_free(r->spare);
    free(r->spare);
}

/* Moves `now` to a place of its own; the next message gets the lists of the spare. */
static struct arrival *arrival_move(struct reading *r)
{
    struct arrival *a = r->spare ? r->spare : calloc(1, sizeof *a), lists;

    if (!a)
        return NULL;
    r->spare = NULL;
    lists = (struct arrival){ .in = a->in, .carried = a->carried, .cap = a->cap };
    *a = r->now;
    a->tensor = 0;
    a->next = NULL;
    r->now = lists;
    return a;
}

static bool arrival_queue(struct pipe *p)
{
    struct reading *r = &p->read;
    struct arrival *a = arrival_move(r);

    if (!a) {
        pipe_failf(p, TENREC_ENOMEM, 0, "no memory for a message whose tensors are on their way");
        return false;
    }
    if (r->waiting)
        r->last_waiting->next = a;
    else
        r->waiting = a;
    r->last_waiting = a;
    r->n_waiting++;
    a->counted = arrival_size(a);
    r->waiting_bytes += a->counted;
    return true;
}

bool arrival_settle(struct pipe *p)
{
    struct reading *r = &p->read;

    if (arrival_waits(r))
        return arrival_queue(p);
    message_place_tensors(p, &r->now);
    message_end(p, &r->now);
    return true;
}

/* The first of those that wait is whole. */
static void arrival_deliver(struct pipe *p)
{
    struct reading *r = &p->read;
    struct arrival *a = r->waiting;

    r->waiting = a->next;
    r->n_waiting--;
    message_end(p, a);
    if (r->spare) {
        arrival_free(a);
        free(a);
    } else {
        r->spare = a;
    }
}

static enum part arrival_take(struct pipe *p, struct arrival *a)
{
    struct intake *t = &p->read.back;

    t->of = a;
    for (; a->tensor < a->n_tensors; a->tensor++, intake_next(t)) {
        enum part part;

        if (!tensor_comes(&a->in[a->tensor]))
            continue;
        part = p->terms.channel->receive(p, t);
        if (part != PART_THERE)
            return part;
        if (reading_turn_is_over(&p->read)) {
            a->tensor++;
            intake_next(t);
            t->more = true;
            return PART_MISSING;
        }
    }
    return PART_THERE;
}

/* It is the first: its tensors get memory. */
static void arrival_begin(struct pipe *p, struct arrival *a)
{
    p->read.waiting_bytes -= a->counted;
    a->counted = 0;
    message_place_tensors(p, a);
}

enum parsed arrival_fill(struct pipe *p)
{
    struct reading *r = &p->read;
    struct intake *t = &r->back;
    const enum conn_role before = t->want;
    enum part part = PART_THERE;

    t->n_lead = 0;
    t->more = false;
    while (r->waiting && part == PART_THERE && pipe_state(p) != PIPE_BROKEN) {
        arrival_begin(p, r->waiting);
        part = arrival_take(p, r->waiting);
        if (part != PART_THERE)
            break;
        if (!p->outgoing && !reading_may_go_on(p))
            return PARSED_PAUSED;
        arrival_deliver(p);
    }
    if (t->want != before)
        t->dry = false;
    return part == PART_BAD || pipe_state(p) == PIPE_BROKEN ? PARSED_BAD : PARSED_ALL;
}
