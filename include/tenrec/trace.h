/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/trace.h - the trace to which calls belong (W3C Trace Context).
 *
 * A call carries the context of its trace. While a function runs, that context is the one of its
 * thread, and calls that the thread makes continue the trace. Without a context a call costs a
 * test. A context is a text of the header `traceparent`:
 *
 *     00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *
 * Spans go out only where observe.traces of the configuration says so.
 */
#ifndef TENREC_TRACE_H
#define TENREC_TRACE_H

#include <tenrec/rpc.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define TENREC_TRACEPARENT_SIZE 56 /* of a text with its NUL */

/* The context of a call that is served, for requests by other means and for the log. Returns false,
 * and sets nothing, if the call has none.
 *
 * ret      receives the text
 * threads  any, until the call is answered
 */
bool tenrec_call_trace(const struct tenrec_call *c, char ret[TENREC_TRACEPARENT_SIZE]);

/* The same of the calling thread. */
bool tenrec_trace_get_current(char ret[TENREC_TRACEPARENT_SIZE]);

/* A former context, for tenrec_trace_leave. Never grows: the program allocates it. */
struct tenrec_trace_scope {
    uint64_t reserved[4];
};

/* Gives the calling thread a context: the calls that it makes continue that trace. A thread that
 * answers a TENREC_LATER call enters the context that tenrec_call_trace returned.
 *
 * traceparent  borrowed during the call; NULL: no context, calls belong to new traces
 * ret          the former context
 * errors       EINVAL (names the wrong part; the context is unchanged)
 */
tenrec_status tenrec_trace_enter(const char *traceparent, struct tenrec_trace_scope *ret,
                                 tenrec_error *err);

/* Restores the former context; on the same thread, the last that was entered first. */
void tenrec_trace_leave(const struct tenrec_trace_scope *scope);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
