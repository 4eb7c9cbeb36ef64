/* SPDX-License-Identifier: Apache-2.0 */
/* scale.h - how slow this build is, and deadlines. */
#ifndef TENREC_TESTKIT_SCALE_H
#define TENREC_TESTKIT_SCALE_H

#include <stdbool.h>
#include <stdint.h>

/* Milliseconds of CLOCK_MONOTONIC. */
int64_t scale_now(void);

/* The end of `ms`, which are stretched here. */
int64_t scale_deadline(int64_t ms);

/* Milliseconds until then; at least 1, for calls that take no 0. */
int64_t scale_left(int64_t deadline);

/* Sleeps a moment; false once the deadline has passed. */
bool scale_moment(int64_t deadline);

#endif
