/* SPDX-License-Identifier: Apache-2.0 */
/* future.h - futures: state, waiters, callbacks; and threads that wait for one. future.lock guards
 * waiters, callbacks and the completion. */
#ifndef TENREC_FUTURE_FUTURE_H
#define TENREC_FUTURE_FUTURE_H

#include "core/base/threads.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <tenrec/future.h>
#include <tenrec/types.h>

struct streams;
struct tenrec_worker;

/* ---- waiter.c: a thread that sleeps until another thread wakes it. Lives on the stack of the
 * waiting thread. Woken through an eventfd if the thread polls for an agent, else through a futex -
 */

struct waiter {
    _Atomic uint32_t woken; /* the `done` of a tenrec_wait */
    int fd;                 /* -1: futex */
    bool by_self;           /* woken by its own thread: no other thread reads it any more */
};

/* `with_fd`: the thread will poll. Falls back to a futex if the system has no descriptor left; then
 * fd is -1. */
void waiter_init(struct waiter *w, bool with_fd);

/* From any thread; not concurrently with waiter_finish. */
void waiter_wake(struct waiter *w);

bool waiter_woken(const struct waiter *w);

/* Sleeps until woken or the deadline. Returns true if woken. */
bool waiter_sleep(struct waiter *w, uint64_t deadline_ns);

void waiter_finish(struct waiter *w);

/* ---- future.c ------------------------------------------------------------------------------- */

/* The only devices that a value of the future may be on. Shared (counted). */
struct future_devices {
    atomic_uint refs;
    size_t n;
    struct tenrec_device device[];
};

enum future_state { FUTURE_PENDING, FUTURE_VALUE, FUTURE_ERROR };

/* A waiter of a future. */
struct future_node {
    struct waiter *waiter;
    struct future_node *next;
};

/* What the observers of a call keep of it (rpc/call/observe.h). Set before it is sent; without an
 * observer only the first two are. */
struct call_seen {
    uint32_t observers; /* a bit for each that saw it begin */
    uint32_t series;    /* of its durations, counted from 1; 0: none */
    uint64_t begun_ns;  /* 0: not observed */
    uint64_t sent_ns;
    uint64_t sent_bytes;
    struct span *span;          /* owns, until the call ends; NULL: not profiled */
    struct tenrec_span *traced; /* likewise; NULL: not sampled */
};

/* The call of a future. `worker` may be used only while the future is pending: shutdown completes
 * all futures before the worker is freed. */
struct future_call {
    struct tenrec_worker *worker; /* NULL: made by the program; the other fields are not set */
    int64_t id;                   /* 0: of several calls, which complete it; future_make_of */
    uint64_t deadline_ns;
    int64_t timeout_ms;
    tenrec_peer to;
    struct call_seen seen;
    _Atomic uint64_t returned_ns;     /* when its thread went on; 0: before that, or not observed */
    struct call_hook *hook;           /* a list; NULL: no hook */
    struct call_sent_hook *sent_hook; /* NULL: no hook */
    struct tenrec_future *result;     /* shared; done in place of this one; NULL: this one is */
    bool one_way;
    bool want_value;
    bool private; /* until it is done, only its waiter and the thread that completes it know it */
    char function[48]; /* for error texts and the recorder; a long name keeps its end */
};

struct future_callback {
    struct future_callback *next;
    struct tenrec_future *future; /* shared while queued to an event loop */
    tenrec_future_fn *fn;
    void *arg;
};

struct tenrec_future {
    atomic_uint refs;
    _Atomic uint32_t state; /* enum future_state; set last, with release */
    struct spinlock lock;
    struct future_node *waiters;
    struct future_callback *callbacks, **last_callback;
    struct future_callback own; /* the first callback, without an allocation */
    struct tenrec_value *value; /* owns; set before state */
    struct streams *streams;    /* shared; the value is ready on these; set before state; or NULL */
    struct future_devices *devices; /* shared; NULL: any */
    tenrec_error *error;            /* owns, or points to the out-of-memory error */
    struct future_call call;
};

struct tenrec_future *future_make(void);
/* A future that several calls of `w` complete, most of them to `to`. NULL: out of memory */
struct tenrec_future *future_make_of(struct tenrec_worker *w, tenrec_peer to);

/* Complete the future: wake waiters, run callbacks. Return false if it was done already.
 * complete_value takes the value always (NULL is nil). */
bool future_complete_value(struct tenrec_future *f, struct tenrec_value *value);
/* Completes it with a value that is ready on `streams` (taken always; may be NULL). */
bool future_complete_ready(struct tenrec_future *f, struct tenrec_value *value,
                           struct streams *streams);
bool future_complete_error(struct tenrec_future *f, const tenrec_error *why);

/* Waits until the call of `f` has ended; `node` is its only waiter. The thread is inside the
 * worker. */
void wait_for_call(struct tenrec_future *f, struct future_node *node);

/* Adds a waiter. Returns false, and adds nothing, if `f` is done. */
bool future_watch(struct tenrec_future *f, struct future_node *node);
void future_unwatch(struct tenrec_future *f, struct future_node *node);

/* The status and error of a done future. */
tenrec_status future_result(const struct tenrec_future *f, tenrec_error *err);

/* Moves the value of a done future out; only for the maker of a future that was not shared.
 *
 * ret      owns: tenrec_value_drop it */
tenrec_status future_take_value(struct tenrec_future *f, struct tenrec_value **ret,
                                tenrec_error *err);

/* Runs the callbacks that were queued to the program's event loop. Returns their number. */
size_t future_callbacks_run(struct future_callback *first);

#endif
