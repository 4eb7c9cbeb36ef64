/* SPDX-License-Identifier: Apache-2.0 */
/* waiter.h - one thread that sleeps until somebody wakes it.
 *
 * Lives on the stack of the thread that waits. It is woken through an eventfd
 * when the thread lends itself to an agent, else through a futex. */
#ifndef TENREC_FUTURE_WAITER_H
#define TENREC_FUTURE_WAITER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct waiter {
    _Atomic uint32_t woken;
    int fd;       /* -1: futex */
    bool by_self; /* its own thread woke it: nobody else looks at it any more */
};

/* `with_fd`: it will be polled for. Falls back to a futex when the system has
 * no descriptor left; then fd is -1. */
void waiter_init(struct waiter *w, bool with_fd);

/* From any thread; the waiter must not be finished meanwhile. */
void waiter_wake(struct waiter *w);

static inline bool waiter_woken(const struct waiter *w)
{
    return atomic_load_explicit(&w->woken, memory_order_acquire) != 0;
}

/* Forget that it was woken, to wait for the next thing. */
static inline void waiter_reset(struct waiter *w)
{
    atomic_store_explicit(&w->woken, 0, memory_order_release);
}

/* Sleeps until woken or the deadline; true when woken. */
bool waiter_sleep(struct waiter *w, uint64_t deadline_ns);

void waiter_finish(struct waiter *w);

#endif
