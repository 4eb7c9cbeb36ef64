/* SPDX-License-Identifier: Apache-2.0 */
/* span.h - a call in progress, recorded on its caller's or callee's side. */
#ifndef TENREC_PROFILER_SPAN_H
#define TENREC_PROFILER_SPAN_H

#include "observe/profiler/sessions.h"
#include "rpc/call/observe.h"

#define SPAN_REMOTE "#remote_op: " /* between the name of a call and that of an event in it */

enum {
    SPANS_MAX = 256 * 1024, /* bytes of spans in an answer */
    SPANS_HEAD = 32,        /* the same if only the head is wanted: the callee's time */
    SPANS_EVENTS = 2048,    /* events kept per served call */
};

/* Both sides. Fields without a comment are written before another thread sees the span. */
struct span {
    atomic_uint refs;
    struct tenrec_worker *w;    /* borrowed for the time of the call */
    struct events *events;      /* shared; of the caller's thread, or of the served call */
    struct tenrec_event *event; /* owns; callee: made by the thread that runs the function */
    uint64_t arrival_ns;        /* callee: of the request */
    _Atomic uint64_t run_ns;    /* callee: until the thread left the call; 0 before */
    uint32_t max;               /* bytes of spans requested */
    bool remote;                /* caller: the callee's events are wanted */
    bool served;                /* inside a served call */
    bool waits;                 /* caller: the thread waits for the answer */
};

extern const struct call_observer profiler_observer;

struct span *span_new(struct tenrec_worker *w, struct events *events);
/* Drops a share. Returns true if it was the last; the caller then frees the span. */
bool span_last(struct span *s);
void span_free(struct span *s);

/* The caller's side (span_call.c). */
void span_begin(struct tenrec_worker *w, struct call_spec *spec);
void span_ended(struct tenrec_worker *w, const struct future_call *c, struct tenrec_msg *answer,
                tenrec_status status, uint64_t now_ns);

/* The callee's side (span_serve.c). */
void span_arrived(struct tenrec_call *c);
tenrec_status span_run(struct tenrec_call *c, uint32_t rest, tenrec_error *err);
void span_served(struct tenrec_call *c, struct tenrec_msg **answer, tenrec_status status,
                 uint64_t now_ns);

#endif
