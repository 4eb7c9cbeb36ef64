/* SPDX-License-Identifier: Apache-2.0 */
/* builtin.h - the functions that every worker serves, by which other workers inspect it. Their
 * names begin with FUNCTION_RESERVED_PREFIX. */
#ifndef TENREC_PROFILER_BUILTIN_H
#define TENREC_PROFILER_BUILTIN_H

#include <tenrec/rpc.h>

struct service_session;
extern const struct service profiler_service; /* of a worker (rpc/call/service.h) */

/* Its state in each worker. */
struct profiler_service {
    struct tenrec_profiler *file; /* owns; writes worker.trace at shutdown; NULL: none */
};

#define DEBUG_INFO_FUNCTION "tenrec.debug_info"

/* The function of that name (debug_info.c): no arguments, returns a map of counters and states. */
tenrec_status debug_info_answer(struct tenrec_call *call, void *arg, tenrec_error *err);

/* A worker with `worker.trace` (trace_file.c). */
tenrec_status trace_file_start(struct tenrec_worker *w, const struct service_session *session,
                               tenrec_error *err);
void trace_file_ended(struct tenrec_worker *w);

#endif
