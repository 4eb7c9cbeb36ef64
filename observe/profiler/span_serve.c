/* SPDX-License-Identifier: Apache-2.0 */
/* span_serve.c - the callee's side of a recorded call. */
#include "observe/profiler/span.h"
#include "observe/profiler/spans_wire.h"

#include "core/base/clock.h"
#include "rpc/call/calls.h"

void span_arrived(struct tenrec_call *c)
{
    const uint64_t now = clock_now_ns();
    bool remote, wanted = sessions_want(c->worker, true, &remote);
    const bool asked = c->in.spans_max > 0 && !c->one_way;
    const bool listed = asked && c->in.spans_max > SPANS_HEAD;
    struct events *events;
    struct span *s;

    if (!wanted && !asked)
        return;
    events = events_new(listed ? SPANS_EVENTS : 0);
    s = events ? span_new(c->worker, events) : NULL;
    events_drop(events);
    if (!s) {
        sessions_miss(c->worker, true, 1);
        return;
    }
    s->events->served = true;
    s->events->remote = listed;
    s->served = true;
    s->arrival_ns = now;
    if (asked)
        s->max = c->in.spans_max < SPANS_MAX ? c->in.spans_max : SPANS_MAX;
    recorders_add();
    c->span = s;
}

/* Makes the event of a call that starts on this thread, or that never starts. */
static void make_event(struct span *s, const struct tenrec_call *c)
{
    struct tenrec_event *e = event_new(s->w, TENREC_EVENT_SERVE, c->function->name);

    s->event = e;
    if (!e)
        return;
    e->caller_id = c->from;
    e->call_id = c->request->id;
    e->received_bytes = observe_message_bytes(c->request);
    e->queue_ns = e->start_ns - s->arrival_ns;
}

/* The thread holds a share, as another thread may finish the call while its function still runs. */
tenrec_status span_run(struct tenrec_call *c, uint32_t rest, tenrec_error *err)
{
    struct span *s = c->span;
    struct thread_events before;
    tenrec_status st;

    if (!s)
        return observe_run(c, rest, err);
    make_event(s, c);
    atomic_fetch_add(&s->refs, 1);
    before = thread_events_enter(s->events);
    st = observe_run(c, rest, err);
    thread_events_leave(before);
    if (s->event)
        atomic_store(&s->run_ns, clock_now_ns() - s->event->start_ns);
    if (span_last(s))
        span_free(s);
    return st;
}

void span_served(struct tenrec_call *c, struct tenrec_msg **answer, tenrec_status status,
                 uint64_t now_ns)
{
    struct span *s = c->span;
    struct spans spans = { .end_ns = clock_now_ns() };
    struct tenrec_event *e;

    (void)now_ns; /* the fast clock is not that of events */
    if (!s)
        return;
    c->span = NULL;
    if (!s->event)
        make_event(s, c);
    e = s->event;
    spans.max = s->max;
    spans.arrival_ns = s->arrival_ns;
    spans.events = s->events;
    events_close(s->events);
    recorders_remove();
    if (e) {
        e->duration_ns = spans.end_ns > e->start_ns ? spans.end_ns - e->start_ns : 0;
        e->run_ns = atomic_load(&s->run_ns);
        /* The function ends with its answer, or still runs. */
        if (!(c->function->flags & TENREC_LATER) || e->run_ns == 0 || e->run_ns > e->duration_ns)
            e->run_ns = e->duration_ns;
        e->status = status;
        if (*answer)
            e->sent_bytes = observe_message_bytes(*answer);
        sessions_add(s->w, true, s->arrival_ns, e, "");
        spans.served = e;
        if (*answer && s->max > 0)
            *answer = spans_attach(*answer, &spans);
    } else {
        sessions_miss(s->w, true, 1);
    }
    if (span_last(s))
        span_free(s);
}
