/* SPDX-License-Identifier: Apache-2.0 */
/* member_service.c - the group as a service of a worker: its devices, lost peers, and the monitor
 * of a dynamic group. */
#include "group/meeting/membership.h"
#include "rpc/call/calls.h"
#include "rpc/call/service.h"
#include "rpc/devices/devices.h"
#include "rpc/monitor/monitor.h"

static tenrec_status member_service_init(struct tenrec_worker *w, const struct service_config *c,
                                         tenrec_error *err)
{
    w->contacts.refused = worker_peer_refused;
    w->calls->view_wait = monitor_view_wait;
    return devices_new(c->settings, &w->calls->devices, err);
}

static void member_service_finish(struct tenrec_worker *w)
{
    disconnects_finish(&group_of(w)->disconnects);
    devices_free(w->calls->devices);
}

static tenrec_status member_service_start(struct tenrec_worker *w, const struct service_session *s,
                                          tenrec_error *err)
{
    (void)s;
    return monitor_open(w, err);
}

static void member_service_stop(struct tenrec_worker *w, const tenrec_error *why)
{
    (void)why;
    monitor_stop(w);
}

static void member_service_debug_info(struct tenrec_worker *w, const struct service_outlet *to)
{
    const struct membership *m = group_of(w)->membership;
    tenrec_error unused;
    size_t n;

    /* The present size of a dynamic group. */
    if (tenrec_worker_get_infos(w, NULL, 0, &n, &unused) != TENREC_OK)
        n = membership_world(m);
    to->text(to->arg, "worker.name", w->self.name);
    service_put(to, "worker.id", w->self.id);
    to->text(to->arg, "worker.backend", chain_name(w->chain, 0));
    to->text(to->arg, "group.name", membership_group(m));
    service_put(to, "group.size", n);
    service_put(to, "group.incarnation", membership_incarnation(m));
    to->text(to->arg, "store.name", membership_store_name(m));
    service_put(to, "store.served_here", membership_serves(m));
    service_put(to, "store.requests", membership_requests(m));
}

const struct service member_service = {
    .name = "member",
    .size = sizeof(struct worker_group),
    .init = member_service_init,
    .finish = member_service_finish,
    .start = member_service_start,
    .run = monitor_start,
    .stop = member_service_stop,
    .release = monitor_close,
    .debug_info = member_service_debug_info,
    .messages = (const struct dispatch_handler[]){ { TENREC_MSG_VIEW, monitor_arrived },
                                                   { TENREC_MSG_VIEW_RET, monitor_answered },
                                                   { 0 } },
};
