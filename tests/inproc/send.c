/* SPDX-License-Identifier: Apache-2.0 */
/* send.c - the way of a message into the queue of another agent. */
#include "inside.h"

#include <errno.h>
#include <stdlib.h>

/* Where `msg` goes: over its route, or over our own connection. With the lock. */
static tenrec_status find_way(struct inproc *a, tenrec_peer to, const struct tenrec_msg *msg,
                              struct inproc **ret, struct tenrec_route *ret_route,
                              tenrec_error *err)
{
    struct inproc *other = hub_find(a->group, to);
    struct peer *p;

    if (!a->serving)
        return tenrec_fail(err, TENREC_ECANCELED, "%s is shut down", a->address);
    if (msg->route.generation) {
        p = other ? hub_peer(other, a->me) : NULL;
        if (!p || p->state != LINK_UP || p->generation != msg->route.generation)
            return tenrec_fail(err, TENREC_EPEER_LOST, "the caller's connection is gone");
        *ret_route = (struct tenrec_route){ 0 };
    } else {
        p = hub_peer(a, to);
        if (!p)
            return tenrec_fail(err, TENREC_EPEER_UNKNOWN, "there is no worker %d", to);
        if (!other)
            return tenrec_fail_errno(err, TENREC_ECONNECT, ECONNREFUSED, "worker %d does not serve",
                                     to);
        if (p->state == LINK_BROKEN || p->state == LINK_TELLING)
            return tenrec_fail(err, TENREC_EPEER_LOST, "worker %d: %s", to, p->why);
        *ret_route = (struct tenrec_route){ (uint64_t)a->me + 1, hub_connect(p) };
    }
    *ret = other;
    return TENREC_OK;
}

/* With the lock, which it gives up while it waits for room. Takes `e` when OK. */
static tenrec_status enqueue(struct inproc *a, tenrec_peer to, struct envelope *e,
                             tenrec_error *err)
{
    const struct tenrec_msg *msg = e->msg;
    struct inproc *other = NULL;

    for (;;) {
        tenrec_status st = find_way(a, to, msg, &other, &e->route, err);
        if (st != TENREC_OK)
            return st;
        if (other->queued < other->limit || (msg->flags & TENREC_MSG_CONTROL))
            break;
        if (!(msg->flags & TENREC_MSG_MAY_WAIT) || !hub_wait(msg->deadline_ns))
            return tenrec_fail(err, TENREC_EAGAIN, "%u messages wait for worker %d", other->queued,
                               to);
    }
    hub_push(other, e);
    a->pending++;
    a->sent++;
    return TENREC_OK;
}

void inproc_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                 struct tenrec_done done)
{
    struct inproc *a = self->impl;
    struct envelope *e = malloc(sizeof *e);
    tenrec_error err;
    tenrec_status st;

    if (e) {
        *e = (struct envelope){ .sender = a, .from = a->me, .msg = msg, .done = done };
        pthread_mutex_lock(&hub_lock);
        st = enqueue(a, to, e, &err);
        pthread_mutex_unlock(&hub_lock);
        if (st == TENREC_OK)
            return;
        free(e);
    } else {
        tenrec_fail(&err, TENREC_ENOMEM, "no memory for an envelope");
    }
    msg->release(msg);
    if (done.fn)
        done.fn(done.arg, &err);
}
