/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.h - the metrics of the workers of this process: as text for Prometheus, and as a value
 * for other workers. */
#ifndef TENREC_METRICS_METRICS_H
#define TENREC_METRICS_METRICS_H

#include <tenrec/rpc.h>

struct functions;

/* A worker has started, or stops: after metrics_leave no reader touches it. errors: ENOMEM */
tenrec_status metrics_enter(struct tenrec_worker *w, tenrec_error *err);
void metrics_leave(struct tenrec_worker *w);

/* All workers that entered, in Prometheus' text format 0.0.4.
 *
 * ret      a text, freed by the caller
 * errors   ENOMEM */
tenrec_status metrics_text(char **ret, size_t *ret_len, tenrec_error *err);

/* The function by which other workers read the durations of a worker's calls (metrics_value.c).
 * errors: ENOMEM */
tenrec_status metrics_serve(struct functions *f, tenrec_error *err);

#endif
