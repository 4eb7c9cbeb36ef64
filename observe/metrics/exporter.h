/* SPDX-License-Identifier: Apache-2.0 */
/* exporter.h - the open exporters of the process. Workers that name the same entry and address
 * share one. */
#ifndef TENREC_METRICS_EXPORTER_H
#define TENREC_METRICS_EXPORTER_H

#include "observe/metrics/exporter_choice.h"

struct exporter;

/* Opens it, or shares the open one, with whose options it goes on.
 *
 * ret      shares (counted): exporter_close
 * errors   ENOMEM, EPLUGIN, and those of the plugin */
tenrec_status exporter_open(struct exporter_choice *choice, const char *address,
                            struct exporter **ret, tenrec_error *err);
/* The last share closes the plugin's exporter, which may take a second. NULL is fine. */
void exporter_close(struct exporter *e);

/* Sends a batch; waits for another thread that sends. errors: EUNSUPPORTED (an exporter that sends
 * nothing), and those of the plugin */
tenrec_status exporter_post(struct exporter *e, const void *body, size_t len, uint32_t timeout_ms,
                            tenrec_error *err);

#endif
