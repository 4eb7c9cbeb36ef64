/* SPDX-License-Identifier: Apache-2.0 */
/* observer_fixture.h - the observer under test, its host, and workers that send it spans. */
#ifndef TENREC_TOOLS_CONFORMANCE_OBSERVER_FIXTURE_H
#define TENREC_TOOLS_CONFORMANCE_OBSERVER_FIXTURE_H

#include "conformance/case.h"

#include <tenrec/observer_plugin.h>

/* The observer as the plugin made it; its host is the command's. */
extern struct tenrec_observer observer;

/* The file of the plugin. */
const char *observer_fixture_path(void);

/* Opens it for the address of the command, or for another. Demands success, or returns the status.
 */
void observer_fixture_open(void);
tenrec_status observer_fixture_try(const char *address, tenrec_error *err);

/* Demands that it ends within a second. */
void observer_fixture_leave(const struct tenrec_origin *origin);
void observer_fixture_close(void);

/* Passes a span of that worker to the observer, which has `span`. Any thread. */
void observer_fixture_span(const struct tenrec_origin *origin);
/* How many spans are done, and how many of these name that worker. */
int observer_fixture_done(void);
int observer_fixture_done_of(const struct tenrec_origin *origin);

#endif
