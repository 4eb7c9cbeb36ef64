/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_pending.c - messages that waited for the handshake, for deferred connections, or for the
 * loop thread. */
#include "cuda/link/link.h"
#include "pipe/pipe.h"
#include "pipe/pipe_send.h"

/* Under the lock, as the next two. */
static void take_first(struct send_request_list *l)
{
    l->first = l->first->next;
    if (!l->first)
        l->last = &l->first;
}

/* Takes off the completion of a message that waited, and its charge. */
static void take_done(struct pipe *p, struct send_request *waited, struct tenrec_done *done)
{
    if (waited->n_done) {
        *done = waited->done[0];
        atomic_fetch_sub(&p->queue.untold, 1);
    }
    pipe_uncharge_message(p, waited);
}

/* Without the lock. No answer will arrive. */
static void refuse_waited(struct pipe *p, struct tenrec_msg *msg, struct tenrec_done done,
                          const tenrec_error *err)
{
    if (p->outgoing && message_wants_answer(msg))
        atomic_fetch_sub(&p->queue.asked, 1);
    pipe_refuse(msg, done, err);
}

static tenrec_status enqueue_waited(struct pipe *p, struct send_request *waited,
                                    struct tenrec_done *done, tenrec_error *err)
{
    tenrec_status st;

    take_done(p, waited, done);
    st = pipe_encode_message(p, waited->msg, *done,
                             waited->charge - send_request_overhead(waited) - waited->cap, NULL,
                             err);
    waited->msg = NULL;
    send_request_free(p, waited);
    return st;
}

/* Under the lock. Takes the first message that waits no longer; NULL: there is none. */
static struct send_request *pending_take(struct pipe *p)
{
    struct send_request_list *l = &p->queue.pending;
    struct send_request **at = &l->first, *r = *at;

    for (; r && (pipe_needs_deferred(p, r->msg) ||
                 (r != l->first && (r->msg->n_tensors || message_keeps_order(r->msg->type))));
         r = *at)
        at = &r->next;
    if (!r)
        return NULL;
    *at = r->next;
    if (!*at)
        l->last = at;
    return r;
}

/* Sends the next message that waits no longer, in order. Returns false if none is left. */
static bool send_next_pending(struct pipe *p)
{
    struct tenrec_done done = { NULL, NULL };
    struct tenrec_msg *msg;
    struct send_request *waited;
    tenrec_error err;
    tenrec_status st;

    pthread_mutex_lock(&p->lock);
    waited = pipe_state(p) == PIPE_BROKEN ? NULL : pending_take(p);
    if (!waited) {
        if (pipe_state(p) != PIPE_BROKEN)
            atomic_store(&p->state, PIPE_ESTABLISHED);
        if (p->queue.pending.first)
            pipe_want_deferred(p);
        pthread_mutex_unlock(&p->lock);
        return false;
    }
    if (pipe_is_for_link(p, waited->msg)) {
        send_request_list_add(&p->devices.sends, waited);
        pthread_mutex_unlock(&p->lock);
        return true;
    }
    msg = waited->msg;
    st = enqueue_waited(p, waited, &done, &err);
    pthread_mutex_unlock(&p->lock);
    if (st)
        refuse_waited(p, msg, done, &err);
    return true;
}

bool pipe_send_device_message(struct pipe *p)
{
    struct tenrec_done done = { NULL, NULL };
    struct tenrec_msg *msg;
    struct send_request *waited;
    tenrec_error err;
    tenrec_status st;

    pthread_mutex_lock(&p->lock);
    waited = pipe_state(p) == PIPE_ESTABLISHED ? p->devices.sends.first : NULL;
    if (waited)
        take_first(&p->devices.sends);
    pthread_mutex_unlock(&p->lock);
    if (!waited)
        return false;
    msg = waited->msg;
    st = link_lend(p, msg, &err);
    pthread_mutex_lock(&p->lock);
    if (!st && pipe_state(p) == PIPE_BROKEN) {
        err = p->why;
        st = err.code;
        link_take_back(p);
    }
    if (st) {
        take_done(p, waited, &done);
        waited->msg = NULL;
        send_request_free(p, waited);
    } else {
        st = enqueue_waited(p, waited, &done, &err);
        if (st)
            link_take_back(p);
    }
    pipe_flush_unlock(p);
    if (st)
        refuse_waited(p, msg, done, &err);
    else
        link_lent(p);
    return true;
}

void pipe_send_pending(struct pipe *p)
{
    while (send_next_pending(p))
        continue;
    pipe_flush(p);
}
