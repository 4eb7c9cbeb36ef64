/* SPDX-License-Identifier: Apache-2.0 */
/* garbage.h - Python objects that a thread of Tenrec has used last.
 *
 * Tenrec frees tensors and objects on any of its threads, also on those that serve connections.
 * None of them may wait for the GIL, so they only queue what is to be released. */
#ifndef PYTHON_GARBAGE_H
#define PYTHON_GARBAGE_H

/* Embedded in the object that is to be released. */
struct garbage {
    struct garbage *next;
    void (*release)(struct garbage *g); /* called once, with the GIL */
};

/* Queues `g`; from any thread, with or without the GIL. */
void garbage_put(struct garbage *g);

/* Releases the queue; with the GIL. */
void garbage_drain(void);

/* Called at the exit of the interpreter: from then on nothing is released. */
void garbage_stop(void);

#endif
