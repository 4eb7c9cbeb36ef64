/* SPDX-License-Identifier: Apache-2.0 */
/* builtin.h - the functions that every worker serves, by which other workers inspect it. Their
 * names begin with FUNCTION_RESERVED_PREFIX. */
#ifndef TENREC_PROFILER_BUILTIN_H
#define TENREC_PROFILER_BUILTIN_H

#include <tenrec/rpc.h>

struct functions;

#define DEBUG_INFO_FUNCTION "tenrec.debug_info"

/* The function of that name (debug_info.c): no arguments, returns a map of counters and states. */
tenrec_status debug_info_answer(struct tenrec_call *call, void *arg, tenrec_error *err);

/* errors: ENOMEM */
tenrec_status builtin_add(struct functions *f, tenrec_error *err);

#endif
