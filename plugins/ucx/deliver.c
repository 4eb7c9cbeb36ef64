/* SPDX-License-Identifier: Apache-2.0 */
/* deliver.c - messages that have arrived, to the host: in their order, requests while it takes
 * them. */
#include "conn.h"
#include "send.h"

/* The caller waits for it, there or here. */
static void deliver_exception(struct conn *c, struct incoming *in)
{
    struct ucx *u = c->u;
    const int32_t type = in->head.type;
    /* The host detects the caller's encoding by the begin of the payload. */
    const struct tenrec_msg dropped = { .size = sizeof dropped,
                                        .type = type,
                                        .id = in->head.id,
                                        .payload = in->begun,
                                        .payload_len = in->n_begun };
    tenrec_error why = in->why;
    struct tenrec_msg *msg;

    /* The owner of a region expects late writes after it has revoked it. */
    u->host->log(u->self, why.code == TENREC_ESTALE ? TENREC_LOG_DEBUG : TENREC_LOG_WARN,
                 "message 0x%x from %s dropped: %s", (unsigned)type, c->label, in->why.text);
    if (type == TENREC_MSG_ONE_WAY_CALL || type == TENREC_MSG_CANCEL)
        return;
    tenrec_error_prefix(&why, "Error on Node %d", u->me); /* the words of torch's workers */
    msg = u->host->exception_new(u->self, &dropped, &why);
    if (msg && c->proof.proved)
        msg->flags |= TENREC_MSG_PROVED; /* as an answer from there has */
    if (!msg)
        conn_break(c, TENREC_ENOMEM, "no memory to say that a message was dropped");
    else if (c->outgoing)
        u->host->deliver_outer(u->self, c->peer, msg);
    else
        send_on(c, msg);
}

static void deliver_unlink(struct conn *c)
{
    struct incoming *in = c->inbox.first;

    c->inbox.first = in->next;
    if (!c->inbox.first)
        c->inbox.last = &c->inbox.first;
    c->window.held -= in->cost;
    c->window.taken += in->cost;
    if (!c->outgoing && c->window.taken - c->window.taken_told >= UCX_WINDOW / 4 && !c->ended &&
        c->why.code == TENREC_OK)
        send_taken(c);
}

static bool deliver_allowed(struct ucx *u, const struct incoming *in)
{
    if (!(in->head.type & TENREC_MSG_REQUEST_BIT))
        return true;
    if (!u->paused && !u->host->accepts(u->self))
        u->paused = true;
    return !u->paused;
}

static void deliver_conn(struct conn *c)
{
    struct ucx *u = c->u;
    struct incoming *in;

    while (!c->ended && (in = c->inbox.first) && in->listed && in->left == 0 &&
           deliver_allowed(u, in)) {
        struct tenrec_msg *msg = in->msg;
        const tenrec_peer from = conn_from(c);

        deliver_unlink(c);
        in->msg = NULL;
        if (msg) {
            pthread_mutex_lock(&u->lock);
            u->received++;
            pthread_mutex_unlock(&u->lock);
            budget_carry(u, msg, &in->charged);
            u->host->deliver_outer(u->self, from, msg);
        } else {
            deliver_exception(c, in);
        }
        incoming_free(in);
    }
}

/* The user takes requests again. */
static void deliver_resume(struct ucx *u)
{
    struct conn *c;

    for (uint32_t i = 0; conn_at(u, i, &c); i++)
        if (c && c->inbox.first)
            conn_ready(c);
}

bool deliver_ready(struct ucx *u)
{
    struct conn *list;
    bool resumed;

    pthread_mutex_lock(&u->lock);
    resumed = u->resumed;
    u->resumed = false;
    pthread_mutex_unlock(&u->lock);
    if (resumed) {
        u->paused = false;
        deliver_resume(u);
    }
    list = u->ready;
    u->ready = NULL;
    if (!list)
        return false;
    while (list) {
        struct conn *c = list;

        list = c->next_ready;
        c->ready = false;
        deliver_conn(c);
        conn_drop(c);
    }
    return true;
}
