/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/profiler/profiler.h"

#include "observe/profiler/span.h"
#include "rpc/call/calls.h"
#include "rpc/call/service.h"

/* For round-trip times: no arguments, no result. */
static tenrec_status builtin_ping(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    (void)call;
    (void)arg;
    (void)err;
    return TENREC_OK;
}

struct profiler_service *profiler_of(const struct tenrec_worker *w)
{
    return w->service[SERVICE_PROFILER];
}

static void profiler_finish(struct tenrec_worker *w)
{
    recorders_forget(profiler_of(w));
}

/* The functions are inline, so that they answer even if blocked functions fill the pool. */
static tenrec_status profiler_init(struct tenrec_worker *w, const struct service_config *c,
                                   tenrec_error *err)
{
    struct functions *f = &w->calls->functions;
    tenrec_status st =
        functions_add(f, DEBUG_INFO_FUNCTION, debug_info_answer, NULL, TENREC_INLINE, err);

    (void)c;
    profiler_of(w)->w = w;
    observe_connect(w, OBSERVER_PROFILER, &profiler_observer);
    recorders_follow(profiler_of(w));
    if (st == TENREC_OK)
        st = functions_add(f, "tenrec.ping", builtin_ping, NULL, TENREC_INLINE, err);
    return st;
}

const struct service profiler_service = {
    .name = "profiler",
    .size = sizeof(struct profiler_service),
    .init = profiler_init,
    .finish = profiler_finish,
    .start = trace_file_start,
    .ended = trace_file_ended,
};
