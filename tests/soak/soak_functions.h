/* SPDX-License-Identifier: Apache-2.0 */
/* soak_functions.h - what both sides of a call know of its numbers and tensors. */
#ifndef SOAK_FUNCTIONS_H
#define SOAK_FUNCTIONS_H

#include "work.h"

enum { LOOK_MS = 2000 };
#define FLIP 0x5aa55aa5u

uint32_t mix(uint64_t x);
/* The tensor that belongs to an id, and whether one is that, each number xored
 * with `key`. */
tenrec_status tensor_make(uint64_t id, int64_t count, struct tenrec_tensor **ret,
                          tenrec_error *err);
bool tensor_is(struct tenrec_tensor *t, uint64_t id, uint32_t key);

/* The bytes that memory of a region has by the id of its writer, and whether they are that. Offset
 * and number are multiples of 4. */
void pattern_fill(void *to, uint64_t id, uint64_t offset, uint64_t bytes);
bool pattern_is(const void *at, uint64_t id, uint64_t offset, uint64_t bytes);

#endif
