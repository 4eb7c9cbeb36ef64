/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.h - the metrics of the workers of this process, for observers and as a value
 * for other workers. */
#ifndef TENREC_METRICS_METRICS_H
#define TENREC_METRICS_METRICS_H

#include <tenrec/observer_plugin.h>

#include "rpc/call/calls.h"

struct tenrec_config;

extern const struct service metrics_service; /* of a worker (rpc/call/service.h) */

/* Checks `observe:`, and the plugins that it needs. errors: as observer_choice_load */
tenrec_status metrics_check(const struct tenrec_config *config, tenrec_error *err);

#define METRICS_FUNCTION "tenrec.metrics"

/* The durations of a worker's calls (metrics_value.c). errors: ENOMEM and those of fn */
tenrec_status metrics_value(struct tenrec_worker *w, value_fn *fn, void *arg, tenrec_error *err);

/* The function of that name, by which other workers read them. errors: ENOMEM */
tenrec_status metrics_serve(struct functions *f, tenrec_error *err);

/* The debug info of all workers of the process as numbers, and their series, read at
 * one time. */

/* ret      owns: snapshot_drop
 * errors   ENOMEM */
tenrec_status snapshot_make(struct tenrec_snapshot **ret, tenrec_error *err);
void snapshot_drop(struct tenrec_snapshot *s); /* NULL is fine */

#endif
