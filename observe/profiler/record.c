/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - events that the program records. */
#include "observe/profiler/span.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "rpc/call/active_calls.h"

#include <stdlib.h>

struct tenrec_record {
    struct tenrec_worker *w;
    struct trace *trace;        /* shared, or NULL */
    struct tenrec_event *event; /* owns */
    bool served;
    bool entered; /* the trace is the thread's until the end */
    struct thread_trace before;
};

static struct tenrec_record *record_begin(struct tenrec_worker *w, struct trace *trace, bool served,
                                          const char *name)
{
    struct tenrec_record *r = memory_new(1, sizeof *r);

    if (!r)
        return NULL;
    r->event = event_new(w, TENREC_EVENT_RECORD, name);
    if (!r->event) {
        free(r);
        return NULL;
    }
    r->w = w;
    r->trace = trace_share(trace);
    r->served = served;
    return r;
}

struct tenrec_record *tenrec_record_begin(struct tenrec_worker *w, const char *name)
{
    struct trace *trace;
    bool served, remote;

    if (!w || !name || !atomic_load_explicit(&span_recorders, memory_order_relaxed))
        return NULL;
    trace = thread_trace();
    served = trace && trace->served;
    if (!trace && !sessions_want(w, served, &remote))
        return NULL;
    return record_begin(w, trace, served, name);
}

struct tenrec_record *tenrec_record_begin_in_call(const struct tenrec_call *c, const char *name)
{
    struct tenrec_record *r;

    if (!c->span || !name)
        return NULL;
    r = record_begin(c->worker, c->span->trace, true, name);
    if (!r)
        return NULL;
    r->entered = true;
    r->before = thread_trace_enter(r->trace);
    return r;
}

static void record_end(struct tenrec_record *r)
{
    struct tenrec_event *e = r->event;
    const uint64_t began_ns = e->start_ns;

    e->duration_ns = clock_now_ns() - began_ns;
    if (e->run_ns == 0)
        e->run_ns = e->duration_ns;
    trace_add(r->trace, e, "");
    sessions_add(r->w, r->served, began_ns, e, "");
    trace_drop(r->trace);
    event_drop(e);
    free(r);
}

void tenrec_record_end(struct tenrec_record *r)
{
    if (!r)
        return;
    if (r->entered)
        thread_trace_leave(r->before);
    record_end(r);
}

static void record_end_with_future(struct tenrec_future *f, void *arg)
{
    (void)f;
    record_end(arg);
}

tenrec_status tenrec_record_end_with(struct tenrec_record *r, struct tenrec_future *f,
                                     tenrec_error *err)
{
    tenrec_status st;

    if (!r)
        return TENREC_OK;
    if (r->entered) {
        tenrec_record_end(r);
        return tenrec_fail(err, TENREC_EINVAL,
                           "the event of a call ends on the thread where it began");
    }
    r->event->run_ns = clock_now_ns() - r->event->start_ns;
    st = tenrec_future_add_callback(f, record_end_with_future, r, err);
    if (st != TENREC_OK)
        record_end(r);
    return st;
}
