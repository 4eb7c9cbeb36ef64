/* SPDX-License-Identifier: Apache-2.0 */
/* observer_place.h - the observer under test, its host, and workers that send it spans. */
#ifndef TENREC_TOOLS_CONFORMANCE_OBSERVER_PLACE_H
#define TENREC_TOOLS_CONFORMANCE_OBSERVER_PLACE_H

#include "conformance/case.h"

#include <tenrec/observer_plugin.h>

/* The observer as the plugin made it; its host is the command's. */
extern struct tenrec_observer observer;

/* The file of the plugin. */
const char *observer_place_path(void);

/* Opens it for the address of the command, or for another. Demands success, or returns the status.
 */
void observer_place_open(void);
tenrec_status observer_place_try(const char *address, tenrec_error *err);

/* Demands that it ends within a second. */
void observer_place_leave(const struct tenrec_origin *origin);
void observer_place_close(void);

/* Passes a span of that worker to the observer, which has `span`. Any thread. */
void observer_place_span(const struct tenrec_origin *origin);
/* How many spans are done, and how many of these name that worker. */
int observer_place_done(void);
int observer_place_done_of(const struct tenrec_origin *origin);

#endif
