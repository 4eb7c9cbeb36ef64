/* SPDX-License-Identifier: Apache-2.0 */
/* inline_calls.h - the inline handler that each thread runs now. Such a call lives on the stack of
 * its thread and is in no table; it is known here while the recorder is on. */
#ifndef TENREC_RECORDER_INLINE_CALLS_H
#define TENREC_RECORDER_INLINE_CALLS_H

#include "recorder/ring.h"

/* Around the handler, on its thread. */
void inline_call_begin(const struct ring_event *e);
void inline_call_end(void);

/* Calls `fn` for each that runs. `told`: was set by an earlier call for the same handler. */
typedef void inline_calls_fn(void *arg, const struct ring_read *call, bool *told);
void inline_calls_each(inline_calls_fn *fn, void *arg);

#endif
