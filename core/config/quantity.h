/* SPDX-License-Identifier: Apache-2.0 */
/* quantity.h - numbers with a unit, read and printed. */
#ifndef TENREC_CONFIG_QUANTITY_H
#define TENREC_CONFIG_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <tenrec/error.h>

#define QUANTITY_TEXT_MAX 32 /* bytes that a printed quantity needs, with the NUL */

/* Reads a duration: `250ms`, `1.5s`, `2m`, `1h`, or `none` (UINT64_MAX, that
 * is TENREC_FOREVER). A bare number is refused, since its unit is ambiguous, unless
 * `plain_seconds`. Whole milliseconds only.
 *
 * errors   EINVAL; the text says what was expected and quotes `text`
 */
tenrec_status quantity_duration(const char *text, bool plain_seconds, uint64_t *ret_ms,
                                tenrec_error *err);

/* Reads a size in bytes: `512`, `64KiB`, `1MiB`, `2GiB` (powers of 1024) and
 * `1kB`, `1MB`, `1GB` (powers of 1000). errors: EINVAL */
tenrec_status quantity_size(const char *text, uint64_t *ret_bytes, tenrec_error *err);

/* Reads an integer, decimal or 0x. errors: EINVAL */
tenrec_status quantity_int(const char *text, int64_t *ret, tenrec_error *err);

/* Reads a finite number with a decimal point in any locale. errors: EINVAL */
tenrec_status quantity_double(const char *text, double *ret, tenrec_error *err);

/* Print with the largest unit that leaves a whole number: "90s", "1500ms", "64KiB". The
 * functions above can read the text. Return `buf`. */
const char *quantity_print_duration(uint64_t ms, char buf[QUANTITY_TEXT_MAX]);
const char *quantity_print_size(uint64_t bytes, char buf[QUANTITY_TEXT_MAX]);

#endif
