/* SPDX-License-Identifier: Apache-2.0 */
/* lease.c - renews the lease, so that no key expires while a process has the store open. */
#include "store.h"

#define CALL_MS 200 /* short: closing the store waits for a renewal */

static bool lease_renew(void *arg, bool worked)
{
    const struct call call = { .script = script_renew };
    struct redis_store *s = arg;
    redisReply *reply = NULL;
    tenrec_error err;
    tenrec_status st = redis_call(s, &call, clock_deadline_ms(CALL_MS), &reply, &err);

    freeReplyObject(st == TENREC_OK ? reply : NULL);
    if (st != TENREC_OK && worked)
        s->self->host->log(s->self, TENREC_LOG_WARN, "%s: cannot renew the lease: %s", s->name,
                           err.text);
    return st == TENREC_OK;
}

tenrec_status lease_start(struct redis_store *s, tenrec_error *err)
{
    if (!s->lease_ms)
        return TENREC_OK;
    s->keeper.renew = lease_renew;
    s->keeper.arg = s;
    s->keeper.lease_ms = s->lease_ms;
    return keeper_start(&s->keeper, "tenrec-redis", err);
}
