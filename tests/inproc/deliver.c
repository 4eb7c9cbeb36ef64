/* SPDX-License-Identifier: Apache-2.0 */
/* deliver.c - an agent's thread: delivers what is queued for it, and tells whose
 * connection broke. */
#include "inside.h"

static void deliver(struct inproc *a, struct envelope *e)
{
    const tenrec_peer from = e->from;
    const bool answers = e->msg->type & TENREC_MSG_RESPONSE_BIT;
    tenrec_error err;
    bool asked;
    struct tenrec_msg *copy = copy_of(a->agent, e, &asked, &err);

    settle(e, copy ? NULL : &err);
    if (copy) {
        a->agent->host->deliver_outer(a->agent, from, copy);
    } else if (answers && !asked) {
        /* No sender repeats an answer: the calls must end. */
        pthread_mutex_lock(&hub_lock);
        hub_break(a, from, "no memory for an answer");
        pthread_mutex_unlock(&hub_lock);
    }
}

void tell_lost(struct inproc *a, struct peer *p)
{
    const tenrec_peer id = p->id;
    tenrec_error why;

    p->state = LINK_TELLING;
    tenrec_fail(&why, TENREC_EPEER_LOST, "worker %d: %s", id, p->why);
    pthread_mutex_unlock(&hub_lock);
    a->agent->host->peer_lost(a->agent, id, &why);
    pthread_mutex_lock(&hub_lock);
    p = hub_peer(a, id); /* others may have come and gone */
    if (p)
        p->state = LINK_NONE;
    pthread_cond_broadcast(&hub_moved);
}

/* Reports that the connection from `p` broke. With the lock, as above. */
static void tell_caller_lost(struct inproc *a, struct peer *p)
{
    const tenrec_peer id = p->id;
    tenrec_error why;

    tenrec_fail(&why, TENREC_EPEER_LOST, "caller %d: %s", id, p->gone);
    p->gone = NULL;
    pthread_mutex_unlock(&hub_lock);
    a->agent->host->caller_lost(a->agent, id, &why);
    pthread_mutex_lock(&hub_lock);
}

/* A connection to or from it broke, and was not reported yet. */
static struct peer *broken_peer(struct inproc *a)
{
    for (uint32_t i = 0; i < a->n_peers; i++)
        if (a->peer[i].state == LINK_BROKEN || a->peer[i].gone)
            return &a->peer[i];
    return NULL;
}

void *deliver_run(void *arg)
{
    struct inproc *a = arg;

    pthread_mutex_lock(&hub_lock);
    while (a->serving) {
        struct peer *p = broken_peer(a);
        struct envelope *e;
        bool yes;
        if (p) {
            if (p->gone)
                tell_caller_lost(a, p);
            else
                tell_lost(a, p);
            continue;
        }
        /* When resume comes while we ask, it wins. */
        a->paused = true;
        pthread_mutex_unlock(&hub_lock);
        yes = a->agent->host->accepts(a->agent);
        pthread_mutex_lock(&hub_lock);
        if (yes)
            a->paused = false;
        e = a->serving ? hub_pop(a, a->paused) : NULL;
        if (!e) {
            if (a->serving && !broken_peer(a))
                hub_wait(0);
            continue;
        }
        a->received++;
        pthread_mutex_unlock(&hub_lock);
        deliver(a, e);
        pthread_mutex_lock(&hub_lock);
    }
    pthread_mutex_unlock(&hub_lock);
    return NULL;
}
