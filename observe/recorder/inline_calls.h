/* SPDX-License-Identifier: Apache-2.0 */
/* inline_calls.h - the inline handler that each thread runs now. Such a call lives on the stack of
 * its thread and is in no table; it is known here while the recorder is on. */
#ifndef TENREC_RECORDER_INLINE_CALLS_H
#define TENREC_RECORDER_INLINE_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include <tenrec/types.h>

struct tenrec_call;

/* Around the handler, on its thread. */
void inline_call_begin(const struct tenrec_call *c);
void inline_call_end(void);

/* A handler that runs, or ran just now. */
struct inline_call {
    uint32_t worker;                 /* its start (tenrec_worker.start) */
    const struct function *function; /* lives as long as the worker */
    tenrec_peer from;
    int64_t id;
    uint32_t thread;
    uint64_t began_ns;
};

/* Calls `fn` for each that runs. `reported` was set by an earlier call for the same handler. */
typedef void inline_calls_fn(void *arg, const struct inline_call *call, bool *reported);
void inline_calls_each(inline_calls_fn *fn, void *arg);

#endif
