/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/profiler/builtin.h"

#include "rpc/call/function.h"

/* For round-trip times: no arguments, no result. */
static tenrec_status builtin_ping(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    (void)call;
    (void)arg;
    (void)err;
    return TENREC_OK;
}

/* Inline, so that they answer even if blocked functions fill the pool. */
tenrec_status builtin_add(struct functions *f, tenrec_error *err)
{
    tenrec_status st =
        functions_add(f, DEBUG_INFO_FUNCTION, debug_info_answer, NULL, TENREC_INLINE, err);

    if (st == TENREC_OK)
        st = functions_add(f, "tenrec.ping", builtin_ping, NULL, TENREC_INLINE, err);
    return st;
}
