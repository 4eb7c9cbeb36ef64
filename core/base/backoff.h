/* SPDX-License-Identifier: Apache-2.0 */
/* backoff.h - polling at growing intervals until a deadline. */
#ifndef TENREC_BASE_BACKOFF_H
#define TENREC_BASE_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

struct backoff {
    uint64_t gap_us; /* before the next poll */
    uint64_t most_us;
};

/* Returns how long to sleep before the next poll: the gap, but not beyond the deadline
 * (CLOCK_NEVER: none); 0 when the deadline has passed. Doubles the gap. */
uint64_t backoff_next_us(struct backoff *p, uint64_t now_ns, uint64_t deadline_ns);

/* Sleeps that long. Returns false, without sleeping, if the deadline has passed. */
bool backoff_take(struct backoff *p, uint64_t deadline_ns);

void backoff_us(uint64_t us); /* a signal may interrupt the sleep */

#endif
