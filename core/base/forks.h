/* SPDX-License-Identifier: Apache-2.0 */
/* forks.h - the child of a fork in code of the program that Tenrec has called.
 *
 * The child has a copy of the calls of its parent, whose answers, callbacks and messages are the
 * parent's alone. So its thread ends where it would return to us. */
#ifndef TENREC_BASE_FORKS_H
#define TENREC_BASE_FORKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/fail.h"

/* The number of forks between this process and the first that called forks_watch. Changes in a
 * child only, while it has one thread. */
extern uint32_t forks_seen;

/* From now on forks are counted. */
void forks_watch(void);

/* A function for the child of each fork, in which the thread that forked is the only one: it
 * initializes locks that other threads may have held, and forgets what is the parent's. Static. */
struct fork_hook {
    void (*child)(void);
    struct fork_hook *next;
    atomic_bool added;
};

void forks_add(struct fork_hook *h);

/* From now on `h` is called. Cheap once it is. */
static inline void forks_follow(struct fork_hook *h)
{
    if (unlikely(!atomic_load_explicit(&h->added, memory_order_acquire)))
        forks_add(h);
}

/* Ends the calling thread without running its destructors, which belong to the parent; of a
 * process without other threads the exit status is 0. `what` has returned. */
_Noreturn void forks_end(const char *what);

/* After each call into code of the program; `before`: forks_seen before the call. */
static inline void forks_check(uint32_t before, const char *what)
{
    if (unlikely(forks_seen != before))
        forks_end(what);
}

#endif
