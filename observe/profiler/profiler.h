/* SPDX-License-Identifier: Apache-2.0 */
/* profiler.h - the profiler as a service of a worker, and the functions that every worker serves,
 * by which other workers inspect it. Their names begin with FUNCTION_RESERVED_PREFIX. */
#ifndef TENREC_PROFILER_PROFILER_H
#define TENREC_PROFILER_PROFILER_H

#include "rpc/call/calls.h"

struct service_session;
extern const struct service profiler_service; /* of a worker (rpc/call/service.h) */

/* Its state in each worker. */
struct profiler_service {
    struct tenrec_profiler *file; /* owns; writes worker.trace at shutdown; NULL: none */
    struct tenrec_worker *w;
    struct profiler_service *next; /* in the list of the process (sessions.c) */
};

struct profiler_service *profiler_of(const struct tenrec_worker *w);

#define DEBUG_INFO_FUNCTION "tenrec.debug_info"

/* The counters and states (debug_info.c), as texts and as a map. errors: ENOMEM and those of fn */
void debug_info_list(struct tenrec_worker *w, tenrec_sink_fn *sink, void *arg);
tenrec_status debug_info_value(struct tenrec_worker *w, value_fn *fn, void *arg, tenrec_error *err);

/* The function of that name: no arguments, returns the map. */
tenrec_status debug_info_answer(struct tenrec_call *call, void *arg, tenrec_error *err);

/* A worker with `worker.trace` (trace_file.c). */
tenrec_status trace_file_start(struct tenrec_worker *w, const struct service_session *session,
                               tenrec_error *err);
void trace_file_ended(struct tenrec_worker *w);

#endif
