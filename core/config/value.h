/* SPDX-License-Identifier: Apache-2.0 */
/* value.h - typed values: read from a node, and numbers with a unit, read and printed. */
#ifndef TENREC_CONFIG_VALUE_H
#define TENREC_CONFIG_VALUE_H

#include "core/base/memory.h"
#include "core/config/node.h"

#include <stdbool.h>
#include <stdint.h>
#include <tenrec/error.h>
#include <tenrec/plugin.h>

#define VALUE_CONTEXT_MAX 160

/* In an error text, after "expected". */
#define VALUE_RECORDS_EXPECTED "a list of maps such as [{key: value}]"

/* Reads `node` by the type, range and choices of `opt` and stores the value at `dst`.
 *
 * context  begins the error text: "backend 'flaky': option 'delay'"
 * arena    owns the texts and arrays that `dst` then points to
 * dst      of the option's type, as in an options struct
 * errors   ECONFIG with the node's position, ENOMEM
 */
tenrec_status value_read(const struct tenrec_option *opt, const struct node *node,
                         const char *context, struct arena *arena, void *dst, tenrec_error *err);

/* Parses a raw text into the list or map that `opt` has: "[a, b]" or "a,b",
 * "{k: v}" or "k=v,k2=v2". Copies any other node.
 *
 * ret      the caller owns it
 */
tenrec_status value_expand(const struct tenrec_option *opt, const struct node *node,
                           const char *context, struct node **ret, tenrec_error *err);

/* Size and alignment of a value of this type; 0 for an unknown type. */
size_t value_size(enum tenrec_option_type type);
size_t value_align(enum tenrec_option_type type);

/* Is it a type that the items of a list may have? */
bool value_is_scalar(enum tenrec_option_type type);

/* Numbers with a unit. */

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
