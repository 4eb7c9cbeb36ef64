/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/worker/parts.h"

#include "observe/metrics/call_durations.h"
#include "observe/profiler/span.h"
#include "rpc/call/serve_trace.h"
#include "rpc/call/watch.h"
#include "rpc/future/worker.h"
#include "rpc/member/disconnect.h"
#include "rpc/member/gather.h"
#include "rpc/member/monitor.h"
#include "rpc/rref/rref_call.h"
#include "rpc/rref/rref_control.h"
#include "rpc/rref/rref_value.h"

void parts_connect(struct tenrec_worker *w, struct worker_parts *parts)
{
    struct dispatch *d = &parts->dispatch;

    pending_init(&parts->pending);
    active_calls_init(&parts->active_calls);
    functions_init(&parts->functions);
    userloop_init(&parts->userloop);
    w->pending = &parts->pending;
    w->active_calls = &parts->active_calls;
    w->functions = &parts->functions;
    w->dispatch = d;
    w->userloop = &parts->userloop;
    w->recorder = &parts->recorder;
    w->recorder->dump_dir = "";
    w->parcels = &rref_parcels;
    w->served_refs = &rref_calls;
    w->spans = &observe_spans;
    watch_connect(w, WATCH_DURATIONS, &call_durations_watch);
    watch_connect(w, WATCH_TRACES, &trace_watch);
    watch_connect(w, WATCH_RECORDER, &recorder_watch);
    w->contacts.refused = worker_peer_refused;
    w->view_wait = monitor_view_wait;
    dispatch_handle(d, TENREC_MSG_RREF_FETCH_CALL, rref_fetch_arrived);
    dispatch_handle(d, TENREC_MSG_RREF_USER_DELETE, rrefs_control_arrived);
    dispatch_handle(d, TENREC_MSG_RREF_FORK_REQUEST, rrefs_control_arrived);
    dispatch_handle(d, TENREC_MSG_RREF_CHILD_ACCEPT, rrefs_control_arrived);
    dispatch_handle(d, TENREC_MSG_GATHER, gather_arrived);
    dispatch_handle(d, TENREC_MSG_VIEW, monitor_arrived);
    dispatch_handle(d, TENREC_MSG_VIEW_RET, monitor_answered);
}

void parts_finish(struct tenrec_worker *w)
{
    userloop_finish(w->userloop);
    functions_finish(w->functions);
    active_calls_finish(w->active_calls);
    pending_finish(w->pending);
}
