/* SPDX-License-Identifier: Apache-2.0 */
/* value.h - reads a typed value from a node. */
#ifndef TENREC_CONFIG_VALUE_H
#define TENREC_CONFIG_VALUE_H

#include "core/base/arena.h"
#include "core/config/node.h"

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

#endif
