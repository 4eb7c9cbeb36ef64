/* SPDX-License-Identifier: Apache-2.0 */
/* trace_context.h - the place of a call in a trace, and its text (W3C Trace Context, traceparent).
 */
#ifndef TENREC_VALUE_TRACE_CONTEXT_H
#define TENREC_VALUE_TRACE_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <tenrec/error.h>

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

#endif
