/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_budget.c - memory that an unauthenticated caller makes this process hold, charged to its
 * source (admission/budget.h) for as long as the caller is a stranger. */
#include "admission/budget.h"
#include "pipe/pipe.h"
#include "wire/storage.h"

#define MESSAGE_COST 2048 /* bytes that the host needs for a request, beside its contents */

bool pipe_begin_budget(struct pipe *p, const struct conn *c)
{
    p->source = source_get(&c->peer, c->pid);
    p->stranger = p->source && source_open_account(p->source, p->ep->host->budget);
    return p->stranger;
}

void pipe_end_budget(struct pipe *p)
{
    pipe_leave_strangers(p);
    source_put(p->source);
}

static void reading_release(struct pipe *p)
{
    if (p->read.held)
        budget_give(p->source, p->read.held);
    p->read.held = 0;
}

void pipe_leave_strangers(struct pipe *p)
{
    pipe_announce_over(p);
    reading_release(p);
    pthread_mutex_lock(&p->lock);
    if (p->stranger)
        budget_give(p->source, atomic_load(&p->queue.bytes));
    p->stranger = false;
    atomic_store(&p->over_budget, false);
    pthread_mutex_unlock(&p->lock);
}

void pipe_charge_source(struct pipe *p, uint64_t n)
{
    if ((int64_t)n < 0)
        budget_give(p->source, -n);
    else if (!budget_charge(p->source, n, p->ep->options))
        atomic_store(&p->over_budget, true);
}

void pipe_fail_over_budget(struct pipe *p)
{
    tenrec_error err;

    budget_refuse(p->source, p->ep->options, &err);
    pipe_failf(p, err.code, 0, "does not read its answers: %s", err.text);
}

tenrec_status pipe_budget_has(struct pipe *p, uint64_t n, tenrec_error *err)
{
    tenrec_status st;

    if (!p->stranger)
        return TENREC_OK;
    st = budget_take(p->source, n, p->ep->options, err);
    if (!st)
        budget_give(p->source, n);
    return st;
}

tenrec_status pipe_announced(struct pipe *p, uint64_t n, tenrec_error *err)
{
    tenrec_status st;

    if (!p->stranger)
        return TENREC_OK;
    if (!p->read.charged)
        n += MESSAGE_COST;
    st = budget_take(p->source, n, p->ep->options, err);
    if (!st)
        p->read.charged += n;
    return st;
}

void pipe_announce_carry(struct pipe *p, struct tenrec_msg *msg)
{
    if (msg)
        budget_carry(p->source, msg, p->read.charged, p->ep->options);
    else
        budget_give(p->source, p->read.charged);
    p->read.charged = 0;
}

void pipe_announce_over(struct pipe *p)
{
    if (p->read.charged)
        budget_give(p->source, p->read.charged);
    p->read.charged = 0;
}

/* A buffer of the usual size, and the lists of usual messages, cost no more than the connection. */
static uint64_t reading_size(const struct pipe *p)
{
    const struct conn *c = p->conns.of[CONN_DESCRIPTOR];
    const struct reading *r = &p->read;
    uint64_t n = c && c->cap > CONN_BUFFER ? c->cap : 0;

    if (r->cap_in > TENSORS_KEPT)
        n += r->cap_in * (sizeof *r->in + sizeof *r->carried);
    return n;
}

tenrec_status pipe_charge_reading(struct pipe *p, tenrec_error *err)
{
    uint64_t size;
    tenrec_status st;

    if (!p->stranger)
        return TENREC_OK;
    size = reading_size(p);
    if (size == p->read.held)
        return TENREC_OK;
    reading_release(p);
    st = budget_take(p->source, size, p->ep->options, err);
    if (!st)
        p->read.held = size;
    return st;
}
