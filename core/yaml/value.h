/* SPDX-License-Identifier: Apache-2.0 */
/* value.h - one typed value out of a node. */
#ifndef TENREC_YAML_VALUE_H
#define TENREC_YAML_VALUE_H

#include "base/arena.h"
#include "yaml/node.h"

#include <tenrec/plugin.h>

#define VALUE_WHAT_MAX 160

/* What a list of maps should have been, after "expected". */
#define VALUE_RECORDS_EXPECTED "a list of maps such as [{key: value}]"

/* Reads `node` as `opt` wants it (type, range, choices) and stores it at `dst`.
 *
 * what     begins the error text: "backend 'flaky': option 'delay'"
 * arena    owns the texts and arrays that `dst` then points to
 * dst      of the option's type, as it stands in an options struct
 * errors   ECONFIG with the node's place, ENOMEM
 */
tenrec_status value_read(const struct tenrec_option *opt, const struct node *node, const char *what,
                         struct arena *arena, void *dst, tenrec_error *err);

/* A raw text read as the list or map that `opt` wants: "[a, b]" or "a,b",
 * "{k: v}" or "k=v,k2=v2". Any other node gives a copy of itself.
 *
 * ret      the caller owns it
 */
tenrec_status value_expand(const struct tenrec_option *opt, const struct node *node,
                           const char *what, struct node **ret, tenrec_error *err);

/* Bytes of a value of this type, and what they must be aligned to; 0 for a
 * type that is not known. */
size_t value_size(enum tenrec_option_type type);
size_t value_align(enum tenrec_option_type type);

#endif
