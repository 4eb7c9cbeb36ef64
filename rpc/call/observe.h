/* SPDX-License-Identifier: Apache-2.0 */
/* observe.h - observers of calls: rooms above that time, record, trace or profile them.
 *
 * While no observer is on, a call costs a test of calls.observed where it begins on each side, and
 * of a zero where it runs and ends. An observer that saw a call begin sees its end, too, even if it
 * was turned off since. docs/internals/observer.md has the order of the hooks. */
#ifndef TENREC_CALL_OBSERVE_H
#define TENREC_CALL_OBSERVE_H

#include "core/base/clock_fast.h"
#include "core/base/fail.h"
#include "rpc/call/call.h"
#include "rpc/call/calls.h"
#include "rpc/future/future.h"

/* Rare events, of which observers are notified whether they are on or not. */
enum call_note {
    NOTE_STARTED,     /* the worker */
    NOTE_STOPPED,     /* likewise */
    NOTE_PEER_LOST,   /* our connection to a peer broke */
    NOTE_CALLER_LOST, /* that of a peer to us */
    NOTE_JOINED,      /* a member of a dynamic group */
    NOTE_LEFT,        /* likewise; with a status: it died */
    NOTE_TIMED_OUT,   /* a call of ours */
    NOTE_LATE_ANSWER, /* dropped, as its call had ended */
    NOTE_REFUSED,     /* a request that was not served */
    NOTES,
};

/* Run on the thread of the event, without a lock of the worker; may not block. Each may be NULL. */
struct call_observer {
    /* A request is about to be written, or sent if spec->room is NULL: what the observer keeps of
     * the call is in spec->seen. */
    void (*begin)(struct tenrec_worker *w, struct call_spec *spec);
    /* Before its future completes. `answer`: with all that follows its value; NULL if none came.
     * c->id is negative for a call that was not sent. */
    void (*ended)(struct tenrec_worker *w, const struct future_call *c, struct tenrec_msg *answer,
                  tenrec_status status, uint64_t now_ns);
    /* A request has arrived, and is read. */
    void (*arrived)(struct tenrec_call *c);
    /* Runs its function by observe_run(c, rest, err); the call may be freed meanwhile. */
    tenrec_status (*run)(struct tenrec_call *c, uint32_t rest, tenrec_error *err);
    /* Before the answer is sent, which may be replaced. *answer is NULL if none is. */
    void (*served)(struct tenrec_call *c, struct tenrec_msg **answer, tenrec_status status,
                   uint64_t now_ns);
    /* `text`: the name of a function or worker. */
    void (*noted)(struct tenrec_worker *w, enum call_note what, tenrec_peer peer, int64_t id,
                  tenrec_status status, const char *text);
    /* Sees also calls whose callers ask for spans, while it is off. */
    bool answers_spans;
};

/* Connects an observer, for the life of the worker. */
void observe_connect(struct tenrec_worker *w, enum observer_of_calls i,
                     const struct call_observer *observer);
void observe_turn(struct tenrec_worker *w, enum observer_of_calls i, bool on);

/* The slow paths. */
void observe_begin(struct tenrec_worker *w, struct call_spec *spec);
void observe_ended(struct tenrec_worker *w, const struct future_call *c, struct tenrec_msg *answer,
                   tenrec_status status);
void observe_refused(struct tenrec_worker *w, struct call_spec *spec, tenrec_status why);
void observe_arrived(struct tenrec_call *c);
tenrec_status observe_run(struct tenrec_call *c, uint32_t rest, tenrec_error *err);
void observe_served(struct tenrec_call *c, struct tenrec_msg **answer, tenrec_status status);
void observe_note(struct tenrec_worker *w, enum call_note what, tenrec_peer peer, int64_t id,
                  tenrec_status status, const char *text);

/* Bytes of a message with its tensors; a storage counts once. */
uint64_t observe_message_bytes(const struct tenrec_msg *msg);

static inline uint32_t observe_bits(const struct tenrec_worker *w)
{
    return atomic_load_explicit(&w->calls->observed, memory_order_relaxed);
}

static inline bool observe_has(const struct tenrec_worker *w, enum observer_of_calls i)
{
    return observe_bits(w) & (1u << i);
}

static inline bool observe_is_on(const struct tenrec_worker *w)
{
    return unlikely(observe_bits(w) != 0);
}

#endif
