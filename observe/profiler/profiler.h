/* SPDX-License-Identifier: Apache-2.0 */
/* profiler.h - a session, and its trace as a file. */
#ifndef TENREC_PROFILER_PROFILER_H
#define TENREC_PROFILER_PROFILER_H

#include "observe/profiler/sessions.h"

struct tenrec_profiler {
    struct events *events;   /* shared */
    struct tenrec_worker *w; /* borrowed; NULL for all workers */
    uint32_t scope;
    uint64_t start_ns; /* on the monotonic clock */
    bool running;
    struct thread_events before;  /* scope thread: the thread's previous list */
    struct tenrec_profiler *next; /* in the list of sessions */
};

/* Writes a Chrome trace (trace_json.c).
 *
 * part     the trace will be merged with those of other workers, where arrows may start */
tenrec_status trace_json_write(const struct tenrec_profiler *p, const char *path, bool part,
                               tenrec_error *err);

#endif
