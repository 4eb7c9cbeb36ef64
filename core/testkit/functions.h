/* SPDX-License-Identifier: Apache-2.0 */
/* functions.h - the functions that every worker of the kit serves. */
#ifndef TENREC_TESTKIT_FUNCTIONS_H
#define TENREC_TESTKIT_FUNCTIONS_H

#include <tenrec/testkit.h>

/* errors: those of tenrec_worker_register_function */
tenrec_status functions_register(struct tenrec_worker *w, tenrec_error *err);

#endif
