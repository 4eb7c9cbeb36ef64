/* SPDX-License-Identifier: Apache-2.0 */
/* sum.h - the integers that a store adds to, as texts. */
#ifndef STORE_SUM_H
#define STORE_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenrec/error.h>

/* False for what is no integer of 64 bits. The text has a NUL at `len`. */
bool sum_read(const char *text, size_t len, int64_t *ret);
/* Adds to what the key holds; NULL: it is missing.
 * errors: EINVAL */
tenrec_status sum_add(const char *key, const char *held, size_t len, int64_t delta, char ret[24],
                      tenrec_error *err);

#endif
