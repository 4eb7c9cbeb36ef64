/* SPDX-License-Identifier: Apache-2.0 */
/* rref_service.c - references as a service of a worker. */
#include "rpc/call/parcel.h"
#include "rpc/call/service.h"
#include "rpc/rref/rref_call.h"
#include "rpc/rref/rref_context.h"
#include "rpc/rref/rref_control.h"
#include "rpc/rref/rref_value.h"

static tenrec_status rref_service_init(struct tenrec_worker *w, const struct service_config *c,
                                       tenrec_error *err)
{
    (void)c, (void)err;
    w->parcels = &rref_parcels;
    w->served_refs = &rref_calls;
    return TENREC_OK;
}

static tenrec_status rref_service_start(struct tenrec_worker *w, const struct service_session *s,
                                        tenrec_error *err)
{
    return rrefs_open(w, s->member, s->n, s->incarnation, err);
}

static void rref_service_close(struct tenrec_worker *w, const tenrec_error *why)
{
    (void)why;
    rrefs_stop(w);
}

static void rref_service_debug_info(struct tenrec_worker *w, const struct service_outlet *to)
{
    const struct rref_counts c = rref_context_count(w->rrefs);

    service_put(to, "rref.num_owner_rrefs", c.num_owner_rrefs);
    service_put(to, "rref.num_forks", c.num_forks);
    service_put(to, "rref.num_pending_users", c.num_pending_users);
    service_put(to, "rref.num_confirmed_users", c.num_confirmed_users);
    service_put(to, "rref.num_pending_children", c.num_pending_children);
    service_put(to, "rref.num_pending_owners", c.num_pending_owners);
    service_put(to, "rref.num_pending_futures", c.num_pending_futures);
    service_put(to, "rref.num_tombstones", c.num_tombstones);
}

const struct service rref_service = {
    .name = "rref",
    .init = rref_service_init,
    .start = rref_service_start,
    .close = rref_service_close,
    .release = rrefs_drop,
    .debug_info = rref_service_debug_info,
    .messages =
        (const struct dispatch_handler[]){ { TENREC_MSG_RREF_FETCH_CALL, rref_fetch_arrived },
                                           { TENREC_MSG_RREF_USER_DELETE, rrefs_control_arrived },
                                           { TENREC_MSG_RREF_FORK_REQUEST, rrefs_control_arrived },
                                           { TENREC_MSG_RREF_CHILD_ACCEPT, rrefs_control_arrived },
                                           { 0 } },
};
