/* SPDX-License-Identifier: Apache-2.0 */
/* thread_end.h - functions that run when a thread ends, so that what the thread kept for its own
 * use is given back. */
#ifndef TENREC_RUNTIME_THREAD_END_H
#define TENREC_RUNTIME_THREAD_END_H

#include <stdbool.h>

/* Thread-local, and zeroed: one for each kind of thing that threads keep. */
struct thread_end {
    void (*fn)(void); /* NULL: the thread does not follow it */
    struct thread_end *next;
};

/* The slow path of thread_end_follow. */
bool thread_end_add(struct thread_end *e, void (*fn)(void));

/* The calling thread runs `fn` when it ends. Returns false if it cannot: then it may keep
 * nothing. What another destructor lets it keep after that is followed again. */
static inline bool thread_end_follow(struct thread_end *e, void (*fn)(void))
{
    return e->fn || thread_end_add(e, fn);
}

#endif
