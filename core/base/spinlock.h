/* SPDX-License-Identifier: Apache-2.0 */
/* spinlock.h - a lock for a few instructions.
 *
 * It costs one locked instruction where a mutex costs two and two calls, which
 * counts where a call acquires several. The price: a waiting thread is not woken,
 * but polls, at once at first, then every 50 us. So hold the lock for a few
 * instructions only: no allocation, no callback. */
#ifndef TENREC_BASE_SPINLOCK_H
#define TENREC_BASE_SPINLOCK_H

#include <stdatomic.h>
#include <stdbool.h>

/* Free when zeroed. Needs no destructor. */
struct spinlock {
    atomic_bool held;
};

void spinlock_wait(struct spinlock *l);

static inline void spinlock_lock(struct spinlock *l)
{
    if (__builtin_expect(atomic_exchange_explicit(&l->held, true, memory_order_acquire), 0))
        spinlock_wait(l);
}

static inline void spinlock_unlock(struct spinlock *l)
{
    atomic_store_explicit(&l->held, false, memory_order_release);
}

#endif
