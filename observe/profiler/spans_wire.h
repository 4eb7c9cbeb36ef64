/* SPDX-License-Identifier: Apache-2.0 */
/* spans_wire.h - the spans after the value of an answer (docs/wire.md). No locks. */
#ifndef TENREC_PROFILER_SPANS_WIRE_H
#define TENREC_PROFILER_SPANS_WIRE_H

#include "observe/profiler/events.h"
#include "rpc/value/cbor_reader.h"

/* Times of events written are of the monotonic clock; times read are relative to the arrival of the
 * request. */
struct spans {
    uint64_t max;        /* bytes that the caller accepts */
    uint64_t arrival_ns; /* of the request */
    uint64_t end_ns;
    const struct tenrec_event *served; /* the call itself, which is written first */
    const struct events *events;       /* the events in the call; closed */
};

/* Takes `answer` and returns it with spans after its value; unchanged if out of memory or room. */
struct tenrec_msg *spans_attach(struct tenrec_msg *answer, const struct spans *s);

struct spans_head {
    uint64_t whole_ns; /* from the request's arrival to its answer */
    uint64_t dropped;  /* events that the callee dropped */
    size_t n;
    struct cbor_reader r;
};

/* Read the bytes of a peer. Return false if they are malformed. `fn` gets the first `max` events in
 * order, borrowed; further events count as dropped. */
typedef void spans_fn(void *arg, struct tenrec_event *e);
bool spans_read_head(const void *data, size_t len, struct spans_head *ret);
bool spans_read_events(struct spans_head *head, size_t max, spans_fn *fn, void *arg);

#endif
