/* SPDX-License-Identifier: Apache-2.0 */
/* budget.c - memory that strangers make this worker hold. A stranger is a caller without a member's
 * id and incarnation. UCX does not report its address, so all strangers share one account. */
#include "conn.h"

static struct tenrec_account_limits budget_limits(const struct ucx *u)
{
    return (struct tenrec_account_limits){ u->opt->max_stranger_bytes, UINT64_MAX };
}

tenrec_status budget_take_locked(const struct conn *c, uint64_t n, uint64_t *charged,
                                 tenrec_error *err)
{
    const struct tenrec_account_limits limits = budget_limits(c->u);
    tenrec_status st;

    if (conn_from_locked(c) != TENREC_ANONYMOUS)
        return TENREC_OK;
    st = c->u->host->budget->take(c->u->account, n, &limits, err);
    if (st == TENREC_OK)
        *charged += n;
    return st;
}

tenrec_status budget_take(const struct conn *c, uint64_t n, uint64_t *charged, tenrec_error *err)
{
    tenrec_status st;

    pthread_mutex_lock(&c->u->lock);
    st = budget_take_locked(c, n, charged, err);
    pthread_mutex_unlock(&c->u->lock);
    return st;
}

void budget_give(struct ucx *u, uint64_t *charged)
{
    if (*charged)
        u->host->budget->give(u->account, *charged);
    *charged = 0;
}

void budget_carry(struct ucx *u, struct tenrec_msg *msg, uint64_t *charged)
{
    const struct tenrec_account_limits limits = budget_limits(u);

    if (*charged)
        u->host->budget->carry(msg, u->account, *charged, &limits);
    *charged = 0;
}
