/* SPDX-License-Identifier: Apache-2.0 */
/* span_call.c - the caller's side of a recorded call. */
#include "observe/profiler/span.h"
#include "observe/profiler/spans_wire.h"

#include "core/base/clock.h"
#include "rpc/future/worker.h"
#include "rpc/value/codec.h"

#include <stdio.h>
#include <string.h>

/* "rpc_sync#add(worker0 -> worker1)". The longest of functions and names fit. */
static struct tenrec_event *call_event(struct tenrec_worker *w, const char *op,
                                       const char *function, tenrec_peer to)
{
    char name[64 + 255 + 2 * TENREC_NAME_MAX];
    struct tenrec_event *e;

    snprintf(name, sizeof name, "%s#%.255s(%s -> %s)", op, function, w->self.name,
             peers_name(&w->peers, to));
    e = event_new(w, TENREC_EVENT_CALL, name);
    if (e)
        e->caller_id = w->self.id;
    return e;
}

void span_begin(struct tenrec_worker *w, struct call_spec *spec)
{
    struct events *events = thread_events();
    const bool served = events && events->served;
    bool remote, wanted = sessions_want(w, served, &remote);
    struct span *s;

    if (!spec->op || (!events && !wanted))
        return;
    s = span_new(w, events);
    /* A fetch runs no function. */
    if (s && !(s->event = call_event(w, spec->op, spec->room ? spec->function : "", spec->to))) {
        span_free(s);
        s = NULL;
    }
    if (!s) {
        events_miss(events, 1);
        sessions_miss(w, served, 1);
        return;
    }
    s->served = served;
    s->waits = strcmp(spec->op, "rpc_sync") == 0 || strcmp(spec->op, "to_here") == 0;
    s->remote = remote || events_want_remote(events);
    s->max = s->remote ? SPANS_MAX : SPANS_HEAD;
    spec->spans_max = s->max;
    spec->seen.span = s;
}

static void span_call_emit(struct span *s, const struct tenrec_event *e, const char *prefix)
{
    events_add(s->events, e, prefix);
    sessions_add(s->w, s->served, s->event->start_ns, e, prefix);
}

/* Events of an answer, with times relative to the request's arrival. */
struct remote_events {
    struct span *span;
    uint64_t arrival_ns, rest_ns; /* on our clock; from then until the answer was sent */
    const char *prefix;
};

static void remote_event_add(void *arg, struct tenrec_event *e)
{
    struct remote_events *c = arg;

    /* Times outside of the call are impossible. */
    if (e->start_ns > c->rest_ns)
        e->start_ns = c->rest_ns;
    if (e->duration_ns > c->rest_ns - e->start_ns)
        e->duration_ns = c->rest_ns - e->start_ns;
    if (e->run_ns > e->duration_ns)
        e->run_ns = e->duration_ns;
    e->start_ns += c->arrival_ns;
    e->remote = 1;
    span_call_emit(c->span, e, c->prefix);
}

static void span_call_miss(struct span *s, uint64_t n)
{
    events_miss(s->events, n);
    sessions_miss(s->w, s->served, n);
}

/* Reads the spans behind the value of an answer, and cuts them off. */
static void span_answered(struct span *s, const struct future_call *call, struct tenrec_msg *msg,
                          uint64_t end_ns)
{
    const uint64_t sent_ns = call->seen.sent_ns;
    const uint64_t round_ns = end_ns > sent_ns ? end_ns - sent_ns : 0;
    char prefix[EVENT_NAME_MAX];
    struct spans_head head;
    size_t at;

    if (codec_first_end(msg, &at) && at < msg->payload_len) {
        const unsigned char *spans = (const unsigned char *)msg->payload + at;
        const size_t len = (size_t)msg->payload_len - at;
        struct remote_events c = { .span = s, .prefix = prefix };

        msg->payload_len = at;
        snprintf(prefix, sizeof prefix, "%s" SPAN_REMOTE, s->event->name);
        if (len > s->max || !spans_read_head(spans, len, &head)) {
            span_call_miss(s, 1);
        } else {
            c.rest_ns = head.whole_ns < round_ns ? head.whole_ns : round_ns;
            s->event->wire_ns = round_ns - c.rest_ns;
            c.arrival_ns = sent_ns + s->event->wire_ns / 2;
            if (s->remote && !spans_read_events(&head, SPANS_EVENTS + 1, remote_event_add, &c))
                head.dropped++;
            if (s->remote && head.dropped > 0)
                span_call_miss(s, head.dropped);
        }
    }
    s->event->received_bytes = observe_message_bytes(msg);
}

void span_ended(struct tenrec_worker *w, const struct future_call *c, struct tenrec_msg *answer,
                tenrec_status status, uint64_t now_ns)
{
    const uint64_t end_ns = clock_now_ns(), returned_ns = atomic_load(&c->returned_ns);
    struct span *s = c->seen.span;
    struct tenrec_event *e;

    (void)w, (void)now_ns; /* the fast clock is not that of events */
    if (!s)
        return;
    if (answer)
        span_answered(s, c, answer, end_ns);
    e = s->event;
    e->call_id = c->id;
    e->status = status;
    e->sent_bytes = c->seen.sent_bytes;
    e->duration_ns = end_ns - e->start_ns;
    /* Its thread waits, or is inside the call still. */
    e->run_ns = s->waits || !returned_ns ? e->duration_ns : returned_ns - e->start_ns;
    if (e->run_ns > e->duration_ns)
        e->run_ns = e->duration_ns;
    span_call_emit(s, e, "");
    span_free(s);
}
