/* SPDX-License-Identifier: Apache-2.0 */
/* trace_thread.h - the context of the running thread. */
#ifndef TENREC_VALUE_TRACE_THREAD_H
#define TENREC_VALUE_TRACE_THREAD_H

#include "rpc/value/trace_context.h"

struct trace_thread {
    bool traced; /* else the thread has no context */
    struct trace_context context;
};

/* A delivery clears `traced` of its thread while it lasts; a served call with a context enters it.
 */
extern _Thread_local struct trace_thread trace_thread STATIC_TLS;

/* Returns the former context, to be assigned to trace_thread later. */
static inline struct trace_thread trace_thread_enter(const struct trace_context *t)
{
    const struct trace_thread outer = trace_thread;

    trace_thread = (struct trace_thread){ true, *t };
    return outer;
}

#endif
