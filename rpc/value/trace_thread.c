/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/value/trace.h"

#include <string.h>
#include <tenrec/trace.h>

_Thread_local struct trace_thread trace_thread;

_Static_assert(sizeof(struct trace_thread) <= sizeof(struct tenrec_trace_scope),
               "a scope keeps a former context");
_Static_assert(TENREC_TRACEPARENT_SIZE == TRACE_TEXT_SIZE, "the same text");

bool tenrec_trace_get_current(char ret[TENREC_TRACEPARENT_SIZE])
{
    if (trace_thread.traced)
        trace_context_print(&trace_thread.context, ret);
    return trace_thread.traced;
}

tenrec_status tenrec_trace_enter(const char *traceparent, struct tenrec_trace_scope *ret,
                                 tenrec_error *err)
{
    const struct trace_thread outer = trace_thread;
    tenrec_status st = TENREC_OK;

    if (!ret)
        return tenrec_fail(err, TENREC_EINVAL, "no place for the former context is given");
    memset(ret, 0, sizeof *ret);
    if (traceparent)
        st = trace_context_parse(traceparent, &trace_thread.context, err);
    if (st != TENREC_OK)
        return st;
    trace_thread.traced = traceparent != NULL;
    memcpy(ret, &outer, sizeof outer);
    return TENREC_OK;
}

void tenrec_trace_leave(const struct tenrec_trace_scope *scope)
{
    memcpy(&trace_thread, scope, sizeof trace_thread);
}
