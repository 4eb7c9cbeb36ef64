/* SPDX-License-Identifier: Apache-2.0 */
/* thread_end.h - functions that run when a thread ends, so that what the thread kept for its own
 * use is given back. */
#ifndef TENREC_BASE_THREAD_END_H
#define TENREC_BASE_THREAD_END_H

#include <stdbool.h>

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

#endif
