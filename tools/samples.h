/* SPDX-License-Identifier: Apache-2.0 */
/* samples.h - durations of single calls, and their percentiles. */
#ifndef TENREC_TOOLS_SAMPLES_H
#define TENREC_TOOLS_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct samples {
    uint64_t *ns;
    size_t n, room;
};

/* Allocates space for `room` times; returns -1 when out of memory. */
int samples_init(struct samples *s, size_t room);
void samples_finish(struct samples *s);

/* Ignores times beyond the room. */
void samples_add(struct samples *s, uint64_t ns);

/* Returns the time in microseconds below which `part` (0..1) of all samples are;
 * 0 without samples. Sorts the samples. */
double samples_us(struct samples *s, double part);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t samples_now_ns(void);

#ifdef __cplusplus
}
#endif

#endif
