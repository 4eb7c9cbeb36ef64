/* SPDX-License-Identifier: Apache-2.0 */
/* pretend.h - simulated devices, for tests of the order of work.
 *
 * Their memory is that of the host, and queued work of a stream runs only
 * when a thread waits for it: code that does not order two streams always sees old
 * bytes. */
#ifndef INPROC_PRETEND_H
#define INPROC_PRETEND_H

#include <tenrec/agent.h>

/* Functions for tests, beyond those that the core knows. */
struct pretend_ops {
    struct tenrec_device_ops ops;
    /* Queues a call of fn(arg): what a kernel would do. */
    void (*launch)(const struct tenrec_stream *s, void (*fn)(void *arg), void *arg);
    /* Blocks of memory that are not free yet, when all that is queued was done. */
    unsigned (*live)(void);
};

extern const struct pretend_ops pretend_ops;

/* Runs all queued work. */
void pretend_finish(void);

#endif
