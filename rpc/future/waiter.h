/* SPDX-License-Identifier: Apache-2.0 */
/* waiter.h - a thread that sleeps until another thread wakes it.
 *
 * Lives on the stack of the waiting thread. Woken through an eventfd if the thread polls for an
 * agent, else through a futex. */
#ifndef TENREC_FUTURE_WAITER_H
#define TENREC_FUTURE_WAITER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

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

#endif
