/* SPDX-License-Identifier: Apache-2.0 */
/* watch.h - both sides of each call, for rooms above that count or record them all.
 *
 * While no watcher is on, a call costs a test of worker.watched where it begins on each side, and
 * of a zero where it ends. */
#ifndef TENREC_CALL_WATCH_H
#define TENREC_CALL_WATCH_H

#include "core/base/clock_fast.h"
#include "rpc/call/calls.h"
#include "rpc/future/future.h"

#include <tenrec/rpc.h>

struct tenrec_call;

/* Bit 1 << i of worker.watched turns watcher i on. */
enum watcher { WATCH_DURATIONS, WATCH_RECORDER, WATCH_TRACES, WATCHERS };
_Static_assert((int)WATCHERS <= (int)CALL_WATCHERS, "each has a place");

/* Rare events, of which the recorder is notified whether it is on or not. */
enum watch_event {
    WATCH_STARTED,     /* the worker */
    WATCH_STOPPED,     /* likewise */
    WATCH_PEER_LOST,   /* our connection to a peer broke */
    WATCH_CALLER_LOST, /* that of a peer to us */
    WATCH_JOINED,      /* a member of a dynamic group */
    WATCH_LEFT,        /* likewise; with a status: it died */
    WATCH_TIMED_OUT,   /* a call of ours */
    WATCH_LATE_ANSWER, /* dropped, as its call had ended */
    WATCH_REFUSED,     /* a request that was not served */
    WATCH_EVENTS,
};

/* Run on the thread of the event; may not block. */
struct call_watch {
    /* Before a request is sent. `function` is the whole name, and f->call.begun_ns the time. For
     * the durations alone. */
    void (*begun)(struct tenrec_worker *w, struct tenrec_future *f, const char *function);
    /* Before its future completes. */
    void (*ended)(struct tenrec_worker *w, const struct tenrec_future *f, tenrec_status status,
                  uint64_t now_ns);
    /* The function of a call starts on this thread. For the recorder alone, like `noted`; it is
     * notified of the end then, even if it was turned off since. */
    void (*serving)(struct tenrec_call *c, uint64_t now_ns);
    /* The answer of a served call was sent, or was not wanted. */
    void (*served)(const struct tenrec_call *c, tenrec_status status, uint64_t now_ns);
    /* `text`: the name of a function or worker. */
    void (*noted)(struct tenrec_worker *w, enum watch_event what, tenrec_peer peer, int64_t id,
                  tenrec_status status, const char *text);
};

/* Connects a watcher, for the life of the worker. */
void watch_connect(struct tenrec_worker *w, enum watcher i, const struct call_watch *watch);
void watch_turn(struct tenrec_worker *w, enum watcher i, bool on);

/* The slow paths: some watcher is on. */
void watch_begun(struct tenrec_worker *w, struct tenrec_future *f, const char *function);
void watch_ended(struct tenrec_worker *w, const struct tenrec_future *f, tenrec_status status);
/* now_ns   0: not read yet */
void watch_serving(struct tenrec_call *c, struct tenrec_worker *w, uint64_t now_ns);
/* recorded  the recorder was notified that its function starts */
void watch_served(const struct tenrec_call *c, struct tenrec_worker *w, bool recorded,
                  tenrec_status status);

/* Tells the recorder. No lock of the worker is held. */
void watch_note(struct tenrec_worker *w, enum watch_event what, tenrec_peer peer, int64_t id,
                tenrec_status status, const char *text);

static inline bool watch_has(const struct tenrec_worker *w, enum watcher i)
{
    return atomic_load_explicit(&w->calls->watched, memory_order_relaxed) & (1u << i);
}

static inline bool watch_is_on(const struct tenrec_worker *w)
{
    return __builtin_expect(atomic_load_explicit(&w->calls->watched, memory_order_relaxed) != 0, 0);
}

#endif
