/* SPDX-License-Identifier: Apache-2.0 */
/* mark.c - events that the program marks. */
#include "observe/profiler/span.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "rpc/call/calls.h"

#include <stdlib.h>

struct tenrec_profiler_mark {
    struct tenrec_worker *w;
    struct events *events;      /* shared, or NULL */
    struct tenrec_event *event; /* owns */
    bool served;
    bool entered; /* the list is the thread's until the end */
    struct thread_events before;
};

static struct tenrec_profiler_mark *mark_begin(struct tenrec_worker *w, struct events *events,
                                               bool served, const char *name)
{
    struct tenrec_profiler_mark *m = memory_new(1, sizeof *m);

    if (!m)
        return NULL;
    m->event = event_new(w, TENREC_EVENT_MARK, name);
    if (!m->event) {
        free(m);
        return NULL;
    }
    m->w = w;
    m->events = events_share(events);
    m->served = served;
    return m;
}

struct tenrec_profiler_mark *tenrec_profiler_mark_begin(struct tenrec_worker *w, const char *name)
{
    struct events *events;
    bool served, remote;

    if (!w || !name || !observe_has(w, OBSERVER_PROFILER))
        return NULL;
    events = thread_events();
    served = events && events->served;
    if (!events && !sessions_want(w, served, &remote))
        return NULL;
    return mark_begin(w, events, served, name);
}

struct tenrec_profiler_mark *tenrec_profiler_mark_begin_in_call(const struct tenrec_call *c,
                                                                const char *name)
{
    struct tenrec_profiler_mark *m;

    if (!c->span || !name)
        return NULL;
    m = mark_begin(c->worker, c->span->events, true, name);
    if (!m)
        return NULL;
    m->entered = true;
    m->before = thread_events_enter(m->events);
    return m;
}

static void mark_end(struct tenrec_profiler_mark *m)
{
    struct tenrec_event *e = m->event;
    const uint64_t began_ns = e->start_ns;

    e->duration_ns = clock_now_ns() - began_ns;
    if (e->run_ns == 0)
        e->run_ns = e->duration_ns;
    events_add(m->events, e, "");
    sessions_add(m->w, m->served, began_ns, e, "");
    events_drop(m->events);
    event_drop(e);
    free(m);
}

void tenrec_profiler_mark_end(struct tenrec_profiler_mark *m)
{
    if (!m)
        return;
    if (m->entered)
        thread_events_leave(m->before);
    mark_end(m);
}

static void mark_end_with_future(struct tenrec_future *f, void *arg)
{
    (void)f;
    mark_end(arg);
}

tenrec_status tenrec_profiler_mark_end_with(struct tenrec_profiler_mark *m, struct tenrec_future *f,
                                            tenrec_error *err)
{
    tenrec_status st;

    if (!m)
        return TENREC_OK;
    if (m->entered) {
        tenrec_profiler_mark_end(m);
        return tenrec_fail(err, TENREC_EINVAL,
                           "the event of a call ends on the thread where it began");
    }
    m->event->run_ns = clock_now_ns() - m->event->start_ns;
    st = tenrec_future_add_callback(f, mark_end_with_future, m, err);
    if (st != TENREC_OK)
        mark_end(m);
    return st;
}
