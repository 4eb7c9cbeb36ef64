/* SPDX-License-Identifier: Apache-2.0 */
/* trace_random.h - random numbers for ids, without a lock or a system call. Not for secrets. */
#ifndef TENREC_VALUE_TRACE_RANDOM_H
#define TENREC_VALUE_TRACE_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

/* Never 0. Returns false if the thread has no seed and the system gives none. */
bool trace_random(uint64_t *ret);

/* Each thread draws a new seed: a fork's child would continue the numbers of its parent. */
void trace_random_renew(void);

#endif
