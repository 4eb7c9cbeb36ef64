/* SPDX-License-Identifier: Apache-2.0 */
/* budget.c - what strangers make this worker hold. A stranger is a caller that no member's id and
 * incarnation belong to: connections are free to it, so a limit for each limits nothing. */
#include "ucx.h"

#include <inttypes.h>

bool budget_take_locked(const struct conn *c, uint64_t n, uint64_t *charged)
{
    struct ucx *u = c->u;

    if (conn_from_locked(c) != TENREC_ANONYMOUS)
        return true;
    if (n > u->opt->max_stranger_bytes || u->stranger_bytes > u->opt->max_stranger_bytes - n)
        return false;
    u->stranger_bytes += n;
    *charged += n;
    return true;
}

tenrec_status budget_take(const struct conn *c, uint64_t n, uint64_t *charged, tenrec_error *err)
{
    struct ucx *u = c->u;
    uint64_t held;
    bool ok;

    pthread_mutex_lock(&u->lock);
    ok = budget_take_locked(c, n, charged);
    held = u->stranger_bytes;
    pthread_mutex_unlock(&u->lock);
    if (ok)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EAGAIN,
                       "%" PRIu64 " bytes of a caller that is no member: such callers hold %" PRIu64
                       " bytes; max_stranger_bytes is %" PRIu64,
                       n, held, u->opt->max_stranger_bytes);
}

void budget_give_locked(struct ucx *u, uint64_t *charged)
{
    u->stranger_bytes -= *charged;
    *charged = 0;
}

void budget_give(struct ucx *u, uint64_t *charged)
{
    if (*charged == 0)
        return;
    pthread_mutex_lock(&u->lock);
    budget_give_locked(u, charged);
    pthread_mutex_unlock(&u->lock);
}
