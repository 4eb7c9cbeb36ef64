/* SPDX-License-Identifier: Apache-2.0 */
/* scale.h - deadlines, stretched for slow builds. */
#ifndef TENREC_TESTKIT_SCALE_H
#define TENREC_TESTKIT_SCALE_H

#include <stdbool.h>
#include <stdint.h>

/* `ms` from now, stretched. */
int64_t scale_deadline(int64_t ms);

/* Milliseconds until the deadline; at least 1, as calls refuse 0. */
int64_t scale_left(int64_t deadline);

/* Sleeps a millisecond. Returns false once the deadline has passed. */
bool scale_moment(int64_t deadline);

#endif
