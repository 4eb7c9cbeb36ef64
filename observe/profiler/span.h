/* SPDX-License-Identifier: Apache-2.0 */
/* span.h - a call in progress, recorded on its caller's or callee's side. */
#ifndef TENREC_PROFILER_SPAN_H
#define TENREC_PROFILER_SPAN_H

#include "observe/profiler/sessions.h"
#include "rpc/call/span.h"

#define SPAN_REMOTE "#remote_op: " /* between the name of a call and that of an event in it */

enum {
    SPANS_MAX = 256 * 1024, /* bytes of spans in an answer */
    SPANS_HEAD = 32,        /* the same if only the head is wanted: the callee's time */
    SPANS_EVENTS = 2048,    /* events kept per served call */
};

/* Both sides. Fields without a comment are written before another thread sees the span, or by its
 * last holder. */
struct span {
    atomic_uint refs;
    struct tenrec_worker *w;    /* borrowed for the time of the call */
    struct events *events;      /* shared; of the caller's thread, or of the served call */
    struct tenrec_event *event; /* owns; callee: made by the thread that runs the function */
    struct tenrec_call *call;   /* callee: borrowed until its end */
    uint64_t sent_ns;           /* caller: of the request */
    uint64_t end_ns;
    uint64_t arrival_ns;     /* callee: of the request */
    _Atomic uint64_t run_ns; /* until the thread left the call; 0 before */
    uint32_t max;            /* bytes of spans requested */
    bool remote;             /* caller: the callee's events are wanted */
    bool served;             /* inside a served call */
    bool waits;              /* caller: the thread waits for the answer */
};

/* The worker passes these hooks to calls. */
extern const struct span_hooks observe_spans;

struct span *span_new(struct tenrec_worker *w, struct events *events, unsigned refs);
/* Drops a share. Returns true if it was the last; the caller then frees the span. */
bool span_last(struct span *s);
void span_free(struct span *s);

/* Bytes of a message with its tensors. */
uint64_t span_bytes(const struct tenrec_msg *msg);

/* The caller's side (span_call.c). */
struct span *span_ask(struct tenrec_worker *w, const char *op, const char *function, tenrec_peer to,
                      uint32_t *ret_max);
void span_write(struct span *s, const struct tenrec_msg *msg);
void span_back(struct span *s, int64_t id);
void span_refused(struct span *s, tenrec_status why);
void span_answered(struct span *s, struct tenrec_msg *msg);
void span_done(struct span *s, const tenrec_error *why);

/* The callee's side (span_serve.c). */
struct span *span_serve(struct tenrec_call *c);
tenrec_status span_run(struct span *s, struct tenrec_call *c, tenrec_error *err);
struct tenrec_msg *span_end(struct span *s, struct tenrec_msg *answer, const tenrec_error *why);

#endif
