/* SPDX-License-Identifier: Apache-2.0 */
/* loop.h - the loop thread of the core: timers, tasks, the TCP store.
 *
 * One per worker (and one per store server that a program opens by itself).
 * Timer and task functions run on the loop thread and must not block. */
#ifndef TENREC_BASE_LOOP_H
#define TENREC_BASE_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <tenrec/error.h>

struct loop;
typedef void loop_fn(void *arg);

/* Starts the thread. errors: ENOMEM, EOS. */
tenrec_status loop_open(struct loop **ret, tenrec_error *err);

/* Runs the functions of calls that wait, drops timers without
 * firing them, joins the thread and frees all. The uv handles that other code opened on
 * loop_uv must be closed by then. */
void loop_close(struct loop *l);

/* Runs fn(arg) on the loop thread, in the order of the calls, and waits for its return; not from
 * the loop thread. */
void loop_call(struct loop *l, loop_fn *fn, void *arg);

bool loop_is_me(const struct loop *l);

/* A timer that can be armed many times, from any thread: `fn` runs at the earliest deadline set.
 * Arming it for a later one than armed_ns does nothing: the timer fires early, and the function
 * reads the clock and arms it again. */
struct loop_timer {
    struct loop *loop;
    loop_fn *fn;
    void *arg;
    _Atomic uint64_t armed_ns; /* CLOCK_NEVER: not armed */
    struct loop_timer *next;   /* guarded by loop->lock */
};

tenrec_status loop_timer_new(struct loop *l, loop_fn *fn, void *arg, struct loop_timer **ret,
                             tenrec_error *err);
void loop_timer_arm(struct loop_timer *t, uint64_t deadline_ns);
/* Not from the timer's own function, which does not run any more afterwards. */
void loop_timer_drop(struct loop_timer *t);

/* The uv_loop_t, for code that runs on the loop thread. */
struct uv_loop_s *loop_uv(struct loop *l);

/* Periodic jobs of the process, on the loop of any running worker.
 *
 * Memory that all workers share outlives each of them and has no thread of its own.
 * While no worker runs, no job runs. */

struct housekeeping;

/* Returns the time of the next run; CLOCK_NEVER: set by housekeeping_at. Runs on the
 * loop thread, may not block. */
typedef uint64_t housekeeping_fn(uint64_t now_ns);

/* Lends the loop to the jobs until housekeeping_leave. errors: ENOMEM */
tenrec_status housekeeping_join(struct loop *l, struct housekeeping **ret, tenrec_error *err);
void housekeeping_leave(struct housekeeping *u); /* NULL is fine */

/* Runs `fn` at the deadline or a little later; an earlier deadline of `fn` stays. There
 * are few functions, and none is ever removed. */
void housekeeping_at(housekeeping_fn *fn, uint64_t deadline_ns);

#endif
