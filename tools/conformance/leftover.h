/* SPDX-License-Identifier: Apache-2.0 */
/* leftover.h - threads, descriptors and memory that a plugin keeps after its end. */
#ifndef TENREC_TOOLS_CONFORMANCE_LEFTOVER_H
#define TENREC_TOOLS_CONFORMANCE_LEFTOVER_H

#include <stdbool.h>

struct leftover {
    int threads, fds; /* of this process */
};

struct leftover leftover_count(void);

/* Demands that no more are there than `before`. A joined thread may be seen for a moment after
 * its join, and a closed descriptor may not. */
void leftover_expect_threads(struct leftover before);
void leftover_expect_fds(struct leftover before);

/* Demands that memory in use does not grow with each call of `life`, of which each frees what it
 * allocates; its text says so. Where an allocator does not count (sanitizers), it sees nothing. */
void leftover_expect_memory(void (*life)(void));

#endif
