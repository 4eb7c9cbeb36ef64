/* SPDX-License-Identifier: Apache-2.0 */
/* type_text.h - values by a type text, such as "iTf[4,*]|s" (tenrec/value.h). */
#ifndef TENREC_VALUE_TYPE_TEXT_H
#define TENREC_VALUE_TYPE_TEXT_H

#include <stdarg.h>
#include <tenrec/value.h>

/* Checks values by the types up to `end`.
 *
 * what     of a value, for the text of the error: "argument"
 * errors   EINVAL */
tenrec_status values_check(const struct tenrec_value *v, size_t n, const char *what,
                           const char *types, const char *end, tenrec_error *err);

/* The letter of the next type in a text that values_check has read, t for every tensor; moves
 * *types behind it. */
char value_next_type(const char **types);

/* tenrec_value_unpack with the addresses in a list. */
tenrec_status values_vget(const struct tenrec_value *v, size_t n, tenrec_error *err,
                          const char *types, va_list ap);

#endif
