/* SPDX-License-Identifier: Apache-2.0 */
/* reconfigure.h - settings that change while the worker runs. */
#ifndef TENREC_WORKER_RECONFIGURE_H
#define TENREC_WORKER_RECONFIGURE_H

#include <tenrec/observe.h>

struct functions;

#define RECONFIGURE_FUNCTION "tenrec.set"

/* Checks all settings, then puts all in force, or none.
 *
 * by       for the log: the name of the member that asks, "" for the program itself or a tool
 * errors   as tenrec_worker_reconfigure */
tenrec_status reconfigure(struct tenrec_worker *w, const struct tenrec_setting *setting, size_t n,
                          const char *by, tenrec_error *err);

/* Adds the function by which other processes ask for it. errors: ENOMEM */
tenrec_status reconfigure_serve(struct functions *f, tenrec_error *err);

#endif
