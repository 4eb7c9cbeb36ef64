/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_budget.c - memory that an unauthenticated caller makes this process hold, charged to its
 * source (struct tenrec_budget) for as long as the caller is a stranger. Of a member only the
 * pipe's own queue is limited. */
#include "pipe/pipe.h"
#include "wire/storage.h"

#define MESSAGE_COST 2048 /* bytes that the host needs for a request, beside its contents */

struct tenrec_account *conn_source(const struct conn *c)
{
    static const char owner; /* its address is the plugin's */

    return c->ep->host->budget->source(&owner, &c->peer.any, (uint32_t)c->pid);
}

static void budget_give(struct pipe *p, uint64_t n)
{
    p->ep->host->budget->give(p->budget.source, n);
}

static tenrec_status budget_take(struct pipe *p, uint64_t n, tenrec_error *err)
{
    return p->ep->host->budget->take(p->budget.source, n, &p->ep->options->strangers, err);
}

bool pipe_begin_budget(struct pipe *p, const struct conn *c)
{
    p->budget.source = conn_source(c);
    p->budget.stranger = p->budget.source != NULL;
    return p->budget.stranger;
}

void pipe_end_budget(struct pipe *p)
{
    pipe_release_budget(p);
    p->ep->host->budget->close(p->budget.source);
}

static void reading_release(struct pipe *p)
{
    if (p->budget.held)
        budget_give(p, p->budget.held);
    p->budget.held = 0;
}

void pipe_release_budget(struct pipe *p)
{
    pipe_announce_carry(p, NULL);
    reading_release(p);
    pthread_mutex_lock(&p->lock);
    if (p->budget.stranger)
        budget_give(p, atomic_load(&p->queue.bytes));
    p->budget.stranger = false;
    atomic_store(&p->budget.over, false);
    pthread_mutex_unlock(&p->lock);
}

void pipe_charge_source(struct pipe *p, uint64_t n)
{
    if ((int64_t)n < 0)
        budget_give(p, -n);
    else if (!p->ep->host->budget->charge(p->budget.source, n, &p->ep->options->strangers))
        atomic_store(&p->budget.over, true);
}

void pipe_fail_over_budget(struct pipe *p)
{
    tenrec_error err;

    p->ep->host->budget->refuse(p->budget.source, &p->ep->options->strangers, &err);
    pipe_failf(p, err.code, 0, "does not read its answers: %s", err.text);
}

tenrec_status pipe_budget_has(struct pipe *p, uint64_t n, tenrec_error *err)
{
    tenrec_status st;

    if (!p->budget.stranger)
        return TENREC_OK;
    st = budget_take(p, n, err);
    if (!st)
        budget_give(p, n);
    return st;
}

tenrec_status pipe_announced(struct pipe *p, uint64_t n, tenrec_error *err)
{
    tenrec_status st;

    if (!p->budget.stranger)
        return TENREC_OK;
    if (!p->budget.announced)
        n += MESSAGE_COST;
    st = budget_take(p, n, err);
    if (!st)
        p->budget.announced += n;
    return st;
}

void pipe_announce_carry(struct pipe *p, struct tenrec_msg *msg)
{
    if (!p->budget.announced)
        return;
    if (msg)
        p->ep->host->budget->carry(msg, p->budget.source, p->budget.announced,
                                   &p->ep->options->strangers);
    else
        budget_give(p, p->budget.announced);
    p->budget.announced = 0;
}

static uint64_t lists_size(const struct arrival *a)
{
    return a->cap > TENSORS_KEPT ? a->cap * (sizeof *a->in + sizeof *a->carried) : 0;
}

/* A buffer of the usual size, and the lists of usual messages, cost no more than the connection. */
static uint64_t reading_size(const struct pipe *p)
{
    const struct conn *c = p->conns.of[CONN_DESCRIPTOR];
    const struct reading *r = &p->read;
    uint64_t n = c && c->cap > CONN_BUFFER ? c->cap : 0;

    for (const struct arrival *a = r->waiting; a; a = a->next)
        n += lists_size(a);
    return n + lists_size(&r->now);
}

tenrec_status pipe_charge_reading(struct pipe *p, tenrec_error *err)
{
    uint64_t size;
    tenrec_status st;

    if (!p->budget.stranger)
        return TENREC_OK;
    size = reading_size(p);
    if (size == p->budget.held)
        return TENREC_OK;
    reading_release(p);
    st = budget_take(p, size, err);
    if (!st)
        p->budget.held = size;
    return st;
}
