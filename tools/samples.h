/* SPDX-License-Identifier: Apache-2.0 */
/* samples.h - times of single calls, and their percentiles. */
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

/* Room for `room` times; -1 when there is no memory. */
int samples_init(struct samples *s, size_t room);
void samples_finish(struct samples *s);

/* Times beyond the room are not kept. */
void samples_add(struct samples *s, uint64_t ns);

/* The time in microseconds below which `part` (0..1) of all lie; 0 when there
 * are none. Sorts the samples. */
double samples_us(struct samples *s, double part);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t samples_now_ns(void);

#ifdef __cplusplus
}
#endif

#endif
