/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base/threads.h"

#include <sched.h>
#include <time.h>

/* The holder runs on another CPU and is nearly done; or it was preempted and may have
 * a lower priority than the waiting thread: then only sleeping lets the holder run. */
enum { SPINS = 100, YIELDS = 20, NAP_NS = 50000 };

static bool try_lock(struct spinlock *l)
{
    return !atomic_load_explicit(&l->held, memory_order_relaxed) &&
           !atomic_exchange_explicit(&l->held, true, memory_order_acquire);
}

void spinlock_wait(struct spinlock *l)
{
    const struct timespec nap = { .tv_nsec = NAP_NS };

    for (int i = 0; !try_lock(l); i++) {
        if (i >= SPINS + YIELDS)
            nanosleep(&nap, NULL);
        else if (i >= SPINS)
            sched_yield();
    }
}
