/* SPDX-License-Identifier: Apache-2.0 */
/* spans_wire.h - the spans that follow the value of an answer (docs/wire.md). */
#ifndef TENREC_OBSERVE_SPANS_WIRE_H
#define TENREC_OBSERVE_SPANS_WIRE_H

#include "codec/cbor_reader.h"
#include "observe/trace.h"

/* Times of the events are of the monotonic clock; what is read counts from
 * the arrival of the request. */
struct spans {
    uint64_t max;        /* bytes that the caller takes */
    uint64_t arrival_ns; /* of the request */
    uint64_t end_ns;
    const struct tenrec_event *served; /* the call itself: told first */
    const struct trace *trace;         /* what happened in it; closed */
};

/* The same answer with spans behind its value; takes `answer`, and returns it as
 * it was when there is no memory or no room. */
struct tenrec_msg *spans_attach(struct tenrec_msg *answer, const struct spans *s);

struct spans_head {
    uint64_t whole_ns; /* from the request's arrival to its answer */
    uint64_t dropped;  /* events that the callee could not keep */
    size_t n;
    struct cbor_reader r;
};

/* Reads what a peer sent: false when it is not well-formed. `fn` gets each event
 * in its order, borrowed; at most `max` of them, the rest is counted as dropped. */
typedef void spans_fn(void *arg, struct tenrec_event *e);
bool spans_read_head(const void *data, size_t len, struct spans_head *ret);
bool spans_read_events(struct spans_head *head, size_t max, spans_fn *fn, void *arg);

#endif
