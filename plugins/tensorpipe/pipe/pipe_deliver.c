/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_deliver.c - messages that are complete go to the host; answers to those that were rejected.
 */
#include "cuda/link/link.h"
#include "pipe/pipe.h"
#include "pipe/pipe_send.h"

#include <stdlib.h>

static bool message_is_request(int32_t type)
{
    return (type & TENREC_MSG_REQUEST_BIT) && !(type & TENREC_MSG_RESPONSE_BIT);
}

/* With the words of torch's workers. */
static struct tenrec_msg *message_exception(struct pipe *p, const struct tenrec_msg *msg,
                                            const tenrec_error *why)
{
    struct endpoint *ep = p->ep;
    tenrec_error told = *why;

    tenrec_error_prefix(&told, "Error on Node %d", (int)ep->me);
    return ep->host->exception_new(ep->self, msg, &told);
}

void pipe_send_exception(struct pipe *p, const struct tenrec_msg *msg, const tenrec_error *why)
{
    struct tenrec_msg *answer = message_exception(p, msg, why);

    if (answer)
        pipe_send(p, answer, (struct tenrec_done){ NULL, NULL });
    else
        pipe_failf(p, TENREC_ENOMEM, 0, "no memory to say that a message was dropped");
}

/* The caller waits for it, there or here. */
static void deliver_skipped(struct pipe *p, int32_t type, int64_t id, const tenrec_error *why)
{
    /* The host detects the caller's encoding from the first bytes of the payload, unless these were
     * never read. */
    const struct tenrec_msg dropped = { .size = sizeof dropped,
                                        .type = type,
                                        .id = id,
                                        .payload = p->read.begun,
                                        .payload_len = p->read.n_begun };
    struct tenrec_msg *msg;

    counter_add(&p->ep->count.messages_skipped, 1);
    /* The owner of a region expects late writes after it has revoked it. */
    endpoint_log(p->ep, why->code == TENREC_ESTALE ? TENREC_LOG_DEBUG : TENREC_LOG_WARN,
                 "message 0x%x from " PIPE_PEER " dropped: %s", type, PIPE_PEER_ARGS(p), why->text);
    if (type == TENREC_MSG_ONE_WAY_CALL || type == TENREC_MSG_CANCEL)
        return;
    if (message_is_request(type)) {
        pipe_send_exception(p, &dropped, why);
        return;
    }
    msg = message_exception(p, &dropped, why);
    if (!msg) {
        pipe_failf(p, TENREC_ENOMEM, 0, "no memory to say that a message was dropped");
        return;
    }
    msg->flags |= p->marks;
    p->ep->host->deliver_outer(p->ep->self, p->from, msg);
}

/* Messages of a caller that claims to be a member are delivered once it is one. Until then it may
 * only announce its view, or link itself; a process of a former life never becomes a member. */
static bool caller_may_speak(struct pipe *p, int32_t type)
{
    return pipe_recognise(p) || type == TENREC_MSG_VIEW || type == TENREC_MSG_LINK;
}

void message_deliver(struct pipe *p, struct tenrec_msg *msg, int32_t type, int64_t id,
                     const tenrec_error *why)
{
    struct endpoint *ep = p->ep;

    /* Requests arrive on incoming pipes only, and answers on outgoing ones: else a stranger could
     * answer a request to another peer. */
    /* Its id says all: it counts also if there was no memory for it. */
    if (unlikely(type == PIPE_MESSAGE) && pipe_told(p, (enum pipe_message)id)) {
        counter_bump(&p->read.n_messages, (uint64_t)-1); /* it answers nothing */
        if (msg)
            msg->release(msg);
        return;
    }
    if (p->outgoing ? message_is_request(type) : type & TENREC_MSG_RESPONSE_BIT) {
        counter_add(&ep->count.messages_dropped, 1);
        endpoint_log(ep, TENREC_LOG_WARN, "message 0x%x from " PIPE_PEER " dropped: %s", type,
                     PIPE_PEER_ARGS(p),
                     p->outgoing ? "a request on the pipe for answers" : "an answer to nothing");
        if (msg)
            msg->release(msg);
        return;
    }
    if (!msg) {
        deliver_skipped(p, type, id, why);
        return;
    }
    if (!p->outgoing)
        msg->route = p->route;
    if (unlikely(p->caller.claims) && !caller_may_speak(p, type)) {
        counter_add(&ep->count.messages_dropped, 1);
        msg->release(msg);
        pipe_failf(p, TENREC_EPROTOCOL, 0,
                   "the caller claims to be member %d in life %llu, which is not in the group",
                   (int)p->caller.id, (unsigned long long)p->caller.incarnation);
        return;
    }
    if (unlikely(p->caller.named) && p->from == TENREC_ANONYMOUS)
        pipe_recognise_name(p);
    ep->host->deliver_outer(ep->self, p->from, msg);
}

/* An idle pipe does not keep the memory of a large message. */
static void message_shrink(struct pipe *p, struct arrival *a)
{
    if (a->cap > TENSORS_KEPT) {
        free(a->in);
        free(a->carried);
        a->in = NULL;
        a->carried = NULL;
        a->cap = 0;
    }
    conn_shrink(p->conns.of[CONN_DESCRIPTOR]);
    pipe_charge_reading(p, NULL); /* it is no more than before */
}

void message_end(struct pipe *p, struct arrival *a)
{
    struct reading *r = &p->read;
    struct arriving *in = a->arriving;
    struct tenrec_msg *msg = a->msg;

    a->msg = NULL;
    a->arriving = NULL;
    if (unlikely(p->budget.announced != 0))
        pipe_announce_carry(p, msg);
    if (unlikely(a->cap > TENSORS_KEPT || p->conns.of[CONN_DESCRIPTOR]->cap > CONN_BUFFER))
        message_shrink(p, a);
    if (unlikely(!msg)) {
        memcpy(r->begun, a->begun, sizeof r->begun);
        r->n_begun = a->n_begun;
    }
    counter_bump(&r->n_messages, 1);
    if (in)
        link_hand_over(p, in, msg, a->type, a->id, &a->why);
    else
        message_deliver(p, msg, a->type, a->id, &a->why);
}
