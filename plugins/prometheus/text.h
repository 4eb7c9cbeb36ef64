/* SPDX-License-Identifier: Apache-2.0 */
/* text.h - the metrics of this process in Prometheus' text format 0.0.4. */
#ifndef PROMETHEUS_TEXT_H
#define PROMETHEUS_TEXT_H

#include <tenrec/observer_plugin.h>

/* ret      a text with a NUL behind its `len` bytes, freed by the caller
 * errors   ENOMEM */
tenrec_status text_make(struct tenrec_observer *self, char **ret, size_t *ret_len,
                        tenrec_error *err);

#endif
