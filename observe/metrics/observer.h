/* SPDX-License-Identifier: Apache-2.0 */
/* observer.h - the open observers of the process, by plugins. Workers that name the same entry and
 * address share one. */
#ifndef TENREC_METRICS_OBSERVER_H
#define TENREC_METRICS_OBSERVER_H

#include "observe/metrics/observer_choice.h"

struct observer;

/* Opens it, or shares the open one, with whose options it goes on.
 *
 * ret      shares (counted): observer_close
 * errors   ENOMEM, EPLUGIN, and those of the plugin */
tenrec_status observer_open(struct observer_choice *choice, const char *address,
                            struct observer **ret, tenrec_error *err);
/* The last share closes the plugin's observer, which may take a second. NULL is fine. */
void observer_close(struct observer *o);

/* observer_span and observer_leave are for an observer that takes spans. */
bool observer_takes_spans(const struct observer *o);
void observer_span(struct observer *o, struct tenrec_span *s); /* takes always */
void observer_leave(struct observer *o, const struct tenrec_origin *origin);

#endif
