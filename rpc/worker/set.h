/* SPDX-License-Identifier: Apache-2.0 */
/* set.h - what an operator changes in a running worker. */
#ifndef TENREC_WORKER_SET_H
#define TENREC_WORKER_SET_H

#include <tenrec/error.h>

struct functions;

/* Adds the function "tenrec.set". errors: ENOMEM */
tenrec_status set_serve(struct functions *f, tenrec_error *err);

#endif
