/* SPDX-License-Identifier: Apache-2.0 */
/* span.h - what calls tell a recorder of calls.
 *
 * The recorder stands above (core/observe) and gives each worker its hooks. While nothing is
 * recorded a call costs one test of span_recorders where the call begins on each side, and a
 * null check where the call ends. */
#ifndef TENREC_CALL_SPAN_H
#define TENREC_CALL_SPAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <tenrec/rpc.h>

struct span; /* one side of a call that is recorded */

/* How many sessions and served calls record in this process; the recorder counts. */
extern _Atomic uint32_t span_recorders;

static inline bool span_wanted(void)
{
    return __builtin_expect(atomic_load_explicit(&span_recorders, memory_order_relaxed) != 0, 0);
}

struct span_hooks {
    /* The caller's side. `ask` returns NULL when nobody records this call. Else
     * the call is written with *ret_max (bytes of spans that its answer may
     * bring; 0: none are asked for), its future gets the span, and `back`
     * follows when the future is there, `refused` when there will be none. Both
     * let go of the asker's share; `done` lets go of the future's. */
    struct span *(*ask)(struct tenrec_worker *w, const char *op, const char *function,
                        tenrec_peer to, uint32_t *ret_max);
    void (*write)(struct span *s, const struct tenrec_msg *msg); /* about to be sent */
    void (*back)(struct span *s, int64_t id);
    void (*refused)(struct span *s, tenrec_status why);
    /* Takes the spans off the answer, so that it ends where its value does. */
    void (*answered)(struct span *s, struct tenrec_msg *msg);
    void (*done)(struct span *s, const tenrec_error *why); /* before its future is */

    /* The callee's side: a request has come; its function runs; its answer is
     * about to be sent (NULL: it has none), which may be exchanged by one with
     * spans. NULL of `serve` as above. */
    struct span *(*serve)(struct tenrec_call *c);
    tenrec_status (*run)(struct span *s, struct tenrec_call *c, tenrec_error *err);
    struct tenrec_msg *(*end)(struct span *s, struct tenrec_msg *answer, const tenrec_error *why);

    /* A worker begins to serve, and has ended. */
    tenrec_status (*started)(struct tenrec_worker *w, tenrec_error *err);
    void (*stopped)(struct tenrec_worker *w);
};

#endif
