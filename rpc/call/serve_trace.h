/* SPDX-License-Identifier: Apache-2.0 */
/* serve_trace.h - the traces of calls, on the callee's side; and the ends of spans on both. */
#ifndef TENREC_CALL_SERVE_TRACE_H
#define TENREC_CALL_SERVE_TRACE_H

#include "rpc/call/active_calls.h"
#include "rpc/call/watch.h"

extern const struct call_watch trace_watch; /* WATCH_TRACES */

/* Makes c->in.trace the context of the served call itself, where it has one, and its span where
 * that is exported. Sets c->traced. */
void serve_trace_begin(struct tenrec_call *c);

/* A call that was begun is refused in another way than by its answer. */
void serve_trace_refused(struct tenrec_call *c, tenrec_status why);

/* Runs the function in the context of its call. */
tenrec_status serve_trace_run(struct tenrec_call *c, tenrec_error *err);

#endif
