/* SPDX-License-Identifier: Apache-2.0 */
/* threads.h - threads of Tenrec's own. */
#ifndef TENREC_BASE_THREADS_H
#define TENREC_BASE_THREADS_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/fail.h"

/* The signal by which a dump asks a thread where it stands (recorder/stack.h). */
#define THREADS_STACK_SIGNAL (SIGRTMAX - 3)

/* pthread_create with a stack of TENREC_THREAD_STACK, or more where more is the default, and with
 * all signals but that one blocked in the new thread: a signal that the program handles, or waits
 * for, is delivered to one of the program's own threads.
 *
 * name     at most 15 bytes, shown by top and debuggers
 * returns  0 or an errno
 */
int threads_start(pthread_t *ret, const char *name, void *(*run)(void *arg), void *arg);

/* Unblocks that signal in this thread if it blocks all, as threads of the backends do. */
void threads_unblock_stack(void);

/* The id of this thread in the system, as the folder in /proc/self/task. */
extern _Thread_local uint32_t thread_own_id STATIC_TLS;
uint32_t thread_find_id(void); /* the slow path */
static inline uint32_t thread_id(void)
{
    return unlikely(thread_own_id == 0) ? thread_find_id() : thread_own_id;
}

/* Functions that run when a thread ends, so that what the thread kept for its own
 * use is given back. */

/* Thread-local and zeroed: one for each kind of object that threads keep. */
struct thread_end {
    void (*fn)(void); /* NULL: not registered for this thread */
    struct thread_end *next;
};

/* The slow path of thread_end_follow. */
bool thread_end_add(struct thread_end *e, void (*fn)(void));

/* Registers `fn` to run when the calling thread ends. Returns false if that fails: then the
 * thread may keep nothing. After `fn` has run, a destructor of another library may register
 * it again. */
static inline bool thread_end_follow(struct thread_end *e, void (*fn)(void))
{
    return e->fn || thread_end_add(e, fn);
}

/* A lock for a few instructions.
 *
 * It costs one locked instruction where a mutex costs two and two calls, which
 * counts where a call acquires several. The price: a waiting thread is not woken,
 * but polls, at once at first, then every 50 us. So hold the lock for a few
 * instructions only: no allocation, no callback. */

/* Free when zeroed. Needs no destructor. */
struct spinlock {
    atomic_bool held;
};

void spinlock_wait(struct spinlock *l);

static inline void spinlock_lock(struct spinlock *l)
{
    if (unlikely(atomic_exchange_explicit(&l->held, true, memory_order_acquire)))
        spinlock_wait(l);
}

static inline void spinlock_unlock(struct spinlock *l)
{
    atomic_store_explicit(&l->held, false, memory_order_release);
}

#endif
