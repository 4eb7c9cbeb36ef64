/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/worker/parts.h"

#include "rpc/future/worker.h"

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
}

void parts_finish(struct tenrec_worker *w)
{
    userloop_finish(w->userloop);
    functions_finish(w->functions);
    active_calls_finish(w->active_calls);
    pending_finish(w->pending);
}
