/* SPDX-License-Identifier: Apache-2.0 */
/* spin.h - whether spinning pays off, learned from whether it did. */
#ifndef TENSORPIPE_SPIN_H
#define TENSORPIPE_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#define SPIN_NS 50000u /* longest spin of progress: adaptive, but for a guest */

struct spin {
    uint32_t misses;  /* in a row */
    uint32_t skip;    /* waits that do not try at all: each waiter counts down */
    uint32_t backoff; /* the next value of skip */
};

/* Notes whether a spin has paid off. */
void spin_ended(struct spin *s, bool paid_off);

#endif
