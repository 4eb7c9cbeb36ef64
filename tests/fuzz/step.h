/* SPDX-License-Identifier: Apache-2.0 */
/* step.h - the input of a target that plays a peer: a list of steps.
 *
 * A step is 8 bytes (what, whom it concerns, the length of its data, an argument) and its
 * data. Any bytes are some list of steps. */
#ifndef TENREC_TESTS_FUZZ_STEP_H
#define TENREC_TESTS_FUZZ_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STEP_HEAD 8
#define STEP_DATA_MAX 4096

struct fuzz_step {
    uint8_t op, who;
    uint32_t arg;
    const uint8_t *data; /* borrows from the input */
    size_t len;
};

struct fuzz_steps {
    const uint8_t *at;
    size_t left;
};

/* Returns false after the last one. */
bool step_next(struct fuzz_steps *steps, struct fuzz_step *ret);

/* Bits [from, from + n) of a step's argument. */
static inline uint32_t step_bits(const struct fuzz_step *s, unsigned from, unsigned n)
{
    return s->arg >> from & ((1u << n) - 1);
}

#endif
