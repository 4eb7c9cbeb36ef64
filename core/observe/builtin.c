/* SPDX-License-Identifier: Apache-2.0 */
/* builtin.c - the functions that every worker has. */
#include "rpc/builtin.h"

#include "observe/debug_info.h"

/* For round trips: nothing there and back. */
static tenrec_status answer_nothing(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    (void)call;
    (void)arg;
    (void)err;
    return TENREC_OK;
}

/* Inline, so that they answer also when the pool is full of blocked functions. */
const struct builtin builtin_functions[] = {
    { DEBUG_INFO_FUNCTION, debug_info_answer, TENREC_INLINE },
    { "tenrec.ping", answer_nothing, TENREC_INLINE },
    { NULL, NULL, 0 },
};
