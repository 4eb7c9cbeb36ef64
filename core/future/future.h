/* SPDX-License-Identifier: Apache-2.0 */
/* future.h - the inside of futures. */
#ifndef TENREC_FUTURE_FUTURE_H
#define TENREC_FUTURE_FUTURE_H

#include "base/spinlock.h"
#include "future/waiter.h"

#include <tenrec/future.h>
#include <tenrec/types.h>

struct streams;
struct tenrec_worker;

/* The only devices that a value of the future may be on. Shared (counted). */
struct future_devices {
    atomic_uint refs;
    size_t n;
    struct tenrec_device device[];
};

enum future_state { FUTURE_PENDING, FUTURE_VALUE, FUTURE_ERROR };

/* One wait for one future. */
struct future_node {
    struct waiter *waiter;
    struct future_node *next;
};

/* What a future of a call knows of it. `worker` may be used only while the
 * future is pending: shutdown completes all before the worker goes. */
struct future_call {
    struct tenrec_worker *worker; /* NULL: made by the program; then nothing else is set */
    int64_t id;
    uint64_t deadline_ns;
    int64_t timeout_ms;
    tenrec_peer to;
    struct span *span;                /* shared; NULL: not recorded */
    struct call_hook *hook;           /* a list; NULL: no hook */
    struct call_sent_hook *sent_hook; /* NULL: no hook */
    bool one_way;
    bool want_value;
    char function[48]; /* for error texts; cut */
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
    struct spinlock lock;   /* guards waiters, callbacks, and completing */
    struct future_node *waiters;
    struct future_callback *callbacks, **last_callback;
    struct future_callback own; /* room for the first one: mostly there is no other */
    struct tenrec_value *value; /* owns; set before state */
    struct streams *streams;    /* shared; on which it is ready; NULL: always. Set before state */
    struct future_devices *devices; /* shared; NULL: any */
    tenrec_error *error;            /* owns, or points to the out-of-memory error */
    struct future_call call;
    struct tenrec_future *next; /* while its thread keeps it for another call */
};

struct tenrec_future *future_make(void);
void future_free(struct tenrec_future *f); /* one that nobody shares any more */

/* Complete it: false when it was done already. complete_value takes the value
 * always (NULL is nil). Runs callbacks, wakes waiters. */
bool future_complete_value(struct tenrec_future *f, struct tenrec_value *value);
/* With a value that is ready on `streams` (taken always; NULL: ready). */
bool future_complete_ready(struct tenrec_future *f, struct tenrec_value *value,
                           struct streams *streams);
bool future_complete_error(struct tenrec_future *f, const tenrec_error *why);

/* Waits until the call of `f`, made with `node` as its only waiter, has ended. By
 * a thread that is inside the worker. */
void wait_for_call(struct tenrec_future *f, struct future_node *node);

/* Adds a waiter; false when f is done already (nothing was added). */
bool future_watch(struct tenrec_future *f, struct future_node *node);
void future_unwatch(struct tenrec_future *f, struct future_node *node);

/* What a done future ended with. */
tenrec_status future_result(const struct tenrec_future *f, tenrec_error *err);

/* Moves the value of a done future out; only who made it and gave it to nobody.
 *
 * ret      owns: tenrec_value_drop it */
tenrec_status future_take_value(struct tenrec_future *f, struct tenrec_value **ret,
                                tenrec_error *err);

/* Runs the callbacks of a list that future_complete handed to a worker's own
 * event loop; returns how many. */
size_t future_callbacks_run(struct future_callback *first);

#endif
