/* SPDX-License-Identifier: Apache-2.0 */
/* call_durations.h - the durations of a worker's calls, on both sides. */
#ifndef TENREC_METRICS_CALL_DURATIONS_H
#define TENREC_METRICS_CALL_DURATIONS_H

#include "rpc/call/watch.h"

extern const struct call_watch call_durations_watch;

#endif
