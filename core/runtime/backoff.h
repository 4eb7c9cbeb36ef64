/* SPDX-License-Identifier: Apache-2.0 */
/* backoff.h - looking again and again, at growing gaps, until a deadline. */
#ifndef TENREC_RUNTIME_BACKOFF_H
#define TENREC_RUNTIME_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

struct backoff {
    uint64_t gap_us; /* before the next look */
    uint64_t most_us;
};

/* How long to sleep before the next look: the gap, but not beyond the deadline
 * (CLOCK_NEVER: none). The next gap is twice as long. 0: the deadline has passed. */
uint64_t backoff_next_us(struct backoff *p, uint64_t now_ns, uint64_t deadline_ns);

/* Sleeps that long by the clock. False: the deadline had passed, and nothing was slept. */
bool backoff_take(struct backoff *p, uint64_t deadline_ns);

void backoff_us(uint64_t us); /* a signal may end it */

#endif
