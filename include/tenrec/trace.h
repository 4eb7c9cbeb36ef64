/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/trace.h - the trace to which calls belong (W3C Trace Context).
 *
 * A call carries the context of its trace. While a function runs, its thread has that context, and
 * calls of the thread continue the trace. Without a context a call costs one test. A context is a
 * text as in the header `traceparent`:
 *
 *     00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *
 * Spans are exported only if observe.traces in the configuration says so.
 */
#ifndef TENREC_TRACE_H
#define TENREC_TRACE_H

#include <tenrec/rpc.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define TENREC_TRACEPARENT_SIZE 56 /* of a text with its NUL */

/* Returns the context of a served call, for requests by other means and for the log. If the call
 * has none, returns false and sets nothing.
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

/* Gives the calling thread a context. The calls of the thread then continue that trace. A thread
 * that answers a TENREC_LATER call enters the context that tenrec_call_trace returned.
 *
 * traceparent  borrowed during the call; NULL: no context, calls belong to new traces
 * ret          the former context
 * errors       EINVAL (names the wrong part; the context is unchanged)
 */
tenrec_status tenrec_trace_enter(const char *traceparent, struct tenrec_trace_scope *ret,
                                 tenrec_error *err);

/* Restores the former context. Call it on the same thread, in reverse order of entering. */
void tenrec_trace_leave(const struct tenrec_trace_scope *scope);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
