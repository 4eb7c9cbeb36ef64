/* SPDX-License-Identifier: Apache-2.0 */
/* profiler.h - the inside of sessions. */
#ifndef TENREC_OBSERVE_PROFILER_H
#define TENREC_OBSERVE_PROFILER_H

#include "observe/sessions.h"

struct tenrec_profiler {
    struct trace *trace;     /* shared */
    struct tenrec_worker *w; /* borrowed; NULL: of all */
    uint32_t scope;
    uint64_t start_ns; /* on the monotonic clock */
    bool running;
    struct thread_trace before;   /* of a thread: the trace that it was in */
    struct tenrec_profiler *next; /* in the list of sessions */
};

/* Writes a Chrome trace (trace_json.c).
 *
 * part     it will be joined with those of other workers: an arrow may come
 *          from there */
tenrec_status trace_json_write(const struct tenrec_profiler *p, const char *path, bool part,
                               tenrec_error *err);

#endif
