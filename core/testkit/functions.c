/* SPDX-License-Identifier: Apache-2.0 */
#include "testkit/functions.h"

static tenrec_status functions_noop(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    (void)call, (void)arg, (void)err;
    return TENREC_OK;
}

tenrec_status functions_register(struct tenrec_worker *w, tenrec_error *err)
{
    return tenrec_worker_register_function(w, TENREC_TEST_NOOP, functions_noop, NULL, TENREC_INLINE,
                                           err);
}
