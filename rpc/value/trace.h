/* SPDX-License-Identifier: Apache-2.0 */
/* trace.h - the place of a call in a trace: its context and the text of that (W3C Trace Context,
 * traceparent), the context of the running thread, and the span of one side of a sampled call. */
#ifndef TENREC_VALUE_TRACE_H
#define TENREC_VALUE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <tenrec/error.h>
#include <tenrec/observer_plugin.h>

enum {
    TRACE_ID_SIZE = 16,
    TRACE_SPAN_ID_SIZE = 8,
    TRACE_TEXT_SIZE = 56, /* with a NUL */
};

enum trace_flags {
    TRACE_SAMPLED = 1, /* spans of the trace are kept */
    TRACE_RANDOM = 2,  /* the last 7 bytes of the id are random (level 2) */
    TRACE_KNOWN = TRACE_SAMPLED | TRACE_RANDOM,
};

/* The same bytes as on the wire (docs/wire.md). */
struct trace_context {
    uint8_t trace_id[TRACE_ID_SIZE];
    uint8_t span_id[TRACE_SPAN_ID_SIZE];
    uint8_t flags;
};
_Static_assert(sizeof(struct trace_context) == 25, "it is sent as it is");

/* Reads a text, also of a later version. Flags without a meaning are cleared. errors: EINVAL */
tenrec_status trace_context_parse(const char *text, struct trace_context *ret, tenrec_error *err);
void trace_context_print(const struct trace_context *t, char ret[TRACE_TEXT_SIZE]);

/* Returns false if one of the ids is zero. */
bool trace_context_valid(const struct trace_context *t);

/* A new trace, which is sampled if its id says so: the last 7 bytes, as a number, are less than
 * `below`. Returns false without random bytes of the system. */
bool trace_context_root(struct trace_context *ret, uint64_t below);

/* `below` of a ratio from 0 to 1. */
uint64_t trace_below(double ratio);

/* A new span in the trace. */
void trace_context_step(struct trace_context *t);

void trace_hex(const uint8_t *bytes, size_t n, char *ret); /* without a NUL */

/* ---- trace_random.c: random numbers for ids, without a lock or a system call. Not for secrets -
 */

/* Never 0. Returns false if the thread has no seed and the system gives none. */
bool trace_random(uint64_t *ret);

/* Each thread draws a new seed: a fork's child would continue the numbers of its parent. */
void trace_random_renew(void);

/* ---- trace_thread.c: the context of the running thread ----------------------------------------
 */

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

/* ---- trace_span.c: one side of a sampled call, for the sink of its worker (a room above) -------
 */

/* The worker of spans. Outlives them. */
struct trace_sink {
    struct tenrec_origin origin; /* first */
    /* Takes the span. Any thread; does not block. */
    void (*add)(struct trace_sink *sink, struct tenrec_span *s);
    _Atomic uint64_t sent, dropped; /* spans */
};

/* A span that starts now, in the trace of `t`: its id becomes that of *t, the former id that of
 * its parent unless it is the first. Returns NULL, and changes nothing, without memory. */
struct tenrec_span *trace_span_new(struct trace_sink *sink, enum tenrec_span_kind kind,
                                   struct trace_context *t, bool first, const char *function,
                                   const char *peer);

/* Ends it, and passes it to its sink. */
void trace_span_end(struct tenrec_span *s, tenrec_status status, uint64_t now_ns);

/* Frees it, and counts it for its sink, if it has one. */
void trace_span_done(struct tenrec_span *s, bool sent);

#endif
