/* SPDX-License-Identifier: Apache-2.0 */
/* span.h - one side of a call while it goes on. */
#ifndef TENREC_OBSERVE_SPAN_H
#define TENREC_OBSERVE_SPAN_H

#include "call/span.h"
#include "observe/sessions.h"

#define SPAN_REMOTE "#remote_op: " /* between a call's name and what happened in it */

enum {
    SPANS_MAX = 256 * 1024, /* bytes of spans that one answer may bring */
    SPANS_HEAD = 32,        /* the same when only their head is wanted: the callee's time */
    SPANS_EVENTS = 2048,    /* events that one served call keeps */
};

/* Both sides. Fields without a word are written by one thread before another
 * one can see the span, or by the last one who has it. */
struct span {
    atomic_uint refs;
    struct tenrec_worker *w;    /* borrowed; while the call goes on */
    struct trace *trace;        /* shared; of the caller's thread, or of the served call */
    struct tenrec_event *event; /* owns; callee: made where the function runs */
    struct tenrec_call *call;   /* callee: borrowed until its end */
    uint64_t sent_ns;           /* caller: the request */
    uint64_t end_ns;
    uint64_t arrival_ns;     /* callee: the request */
    _Atomic uint64_t run_ns; /* until its thread left it; 0: is in it */
    uint32_t max;            /* bytes of spans asked for */
    bool remote;             /* caller: the callee's events are wanted */
    bool served;             /* inside a served call */
    bool waits;              /* caller: its thread waits for the end */
};

/* The hooks that the worker hands to calls. */
extern const struct span_hooks observe_spans;

struct span *span_new(struct tenrec_worker *w, struct trace *trace, unsigned refs);
/* Drops one share; true: it was the last, which the caller still has. */
bool span_last(struct span *s);
void span_free(struct span *s);

/* Bytes that a message carries. */
uint64_t span_bytes(const struct tenrec_msg *msg);

/* The caller's side (span_call.c). */
struct span *span_ask(struct tenrec_worker *w, const char *op, const char *function, tenrec_peer to,
                      uint32_t *ret_max);
void span_write(struct span *s, const struct tenrec_msg *msg);
void span_back(struct span *s, int64_t id);
void span_refused(struct span *s, tenrec_status why);
void span_answered(struct span *s, struct tenrec_msg *msg);
void span_done(struct span *s, const tenrec_error *why);

/* The callee's (span_serve.c). */
struct span *span_serve(struct tenrec_call *c);
tenrec_status span_run(struct span *s, struct tenrec_call *c, tenrec_error *err);
struct tenrec_msg *span_end(struct span *s, struct tenrec_msg *answer, const tenrec_error *why);

/* A worker with `worker.trace` (trace_file.c). */
tenrec_status span_started(struct tenrec_worker *w, tenrec_error *err);
void span_stopped(struct tenrec_worker *w);

#endif
