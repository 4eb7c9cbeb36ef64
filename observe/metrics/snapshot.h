/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.h - the debug info of all workers of the process as numbers, and their series, read at
 * one time. */
#ifndef TENREC_METRICS_SNAPSHOT_H
#define TENREC_METRICS_SNAPSHOT_H

#include <tenrec/observer_plugin.h>

/* ret      owns: snapshot_drop
 * errors   ENOMEM */
tenrec_status snapshot_make(struct tenrec_snapshot **ret, tenrec_error *err);
void snapshot_drop(struct tenrec_snapshot *s); /* NULL is fine */

#endif
