/* SPDX-License-Identifier: Apache-2.0 */
/* tree.h - parses YAML text into nodes with file, line and column.
 *
 * The plain part of YAML: maps, lists and scalars in block and flow style.
 * Anchors, aliases, tags, merge keys, keys that are not text, duplicate keys and
 * several documents are refused, each with its position. */
#ifndef TENREC_CONFIG_TREE_H
#define TENREC_CONFIG_TREE_H

#include "core/config/node.h"

#define TREE_MAX_BYTES ((size_t)1 << 20)
#define TREE_MAX_DEPTH 32
#define TREE_MAX_NODES 10000

/* Parses `len` bytes of `text`.
 *
 * where    the kind and name of each node's position; nodes of a file get line and
 *          column from the text, other nodes a copy of `where`
 * ret      the root, owned by the caller; NULL for an empty text
 * errors   ECONFIG with the position, ENOMEM
 */
tenrec_status tree_parse(const char *text, size_t len, const struct position *where,
                         struct node **ret, tenrec_error *err);

#endif
