/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - monotonic time, deadlines, and polling at growing intervals until a deadline. */
#ifndef TENREC_BASE_CLOCK_H
#define TENREC_BASE_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define CLOCK_NEVER UINT64_MAX /* a deadline that never passes */

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t clock_now_ns(void);

/* The same for a quarter of the time, up to 10 ms late. */
uint64_t clock_about_ns(void);

/* The deadline `ms` milliseconds from now; CLOCK_NEVER for UINT64_MAX ms and
 * for what would overflow. */
uint64_t clock_deadline_ms(uint64_t ms);

/* The same from that time on. */
uint64_t clock_later_ms(uint64_t now_ns, uint64_t ms);

/* The same for a quarter of the time that reading the clock takes: a deadline of
 * a second or more passes up to 10 ms late, never early. */
uint64_t clock_deadline_about_ms(uint64_t ms);

/* Milliseconds until `deadline_ns`, rounded up; 0 when it has passed, -1 for
 * CLOCK_NEVER: the argument of poll(2). */
int clock_left_ms(uint64_t deadline_ns);

/* The same as a timespec relative to now, for ppoll; NULL for CLOCK_NEVER. */
struct timespec *clock_left_ts(uint64_t deadline_ns, struct timespec *buf);

bool clock_passed(uint64_t deadline_ns);

/* Makes a condition for clock_cond_wait. */
void clock_cond_init(pthread_cond_t *cond);

/* Waits as pthread_cond_wait does. Returns false at the deadline. */
bool clock_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline_ns);

/* Polling at growing intervals until a deadline. */

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
