/* SPDX-License-Identifier: Apache-2.0 */
/* span.h - hooks of calls for a recorder, which is above (observe/profiler).
 *
 * Without a recorder a call costs a test of span_recorders where it begins on each side, and a null
 * check where it ends. */
#ifndef TENREC_CALL_SPAN_H
#define TENREC_CALL_SPAN_H

#include <stdatomic.h>
#include <tenrec/message.h>
#include <tenrec/rpc.h>

struct span; /* one side of a recorded call */

/* The number of sessions and served calls that record in this process, kept by the recorder. Each
 * call tests it. */
extern _Atomic uint32_t span_recorders;

struct span_hooks {
    /* The caller's side. `ask` returns NULL if this call is not recorded. Else the call is written
     * with *ret_max (bytes of spans allowed in its answer; 0: none), its future gets the span, and
     * `back` follows once the future is made, or `refused` if the call fails before. Both drop the
     * share of `ask`; `done` drops the future's. */
    struct span *(*ask)(struct tenrec_worker *w, const char *op, const char *function,
                        tenrec_peer to, uint32_t *ret_max);
    void (*write)(struct span *s, const struct tenrec_msg *msg); /* about to be sent */
    void (*back)(struct span *s, int64_t id);
    void (*refused)(struct span *s, tenrec_status why);
    /* Removes the spans from the answer, so that it ends after its value. */
    void (*answered)(struct span *s, struct tenrec_msg *msg);
    void (*done)(struct span *s, const tenrec_error *why); /* before its future is */

    /* The callee's side: a request has arrived; its function runs; its answer (may be NULL) is
     * about to be sent, and may be replaced by one with spans. `serve` returns NULL like `ask`. */
    struct span *(*serve)(struct tenrec_call *c);
    tenrec_status (*run)(struct span *s, struct tenrec_call *c, tenrec_error *err);
    struct tenrec_msg *(*end)(struct span *s, struct tenrec_msg *answer, const tenrec_error *why);
};

#endif
