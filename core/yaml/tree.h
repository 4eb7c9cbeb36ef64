/* SPDX-License-Identifier: Apache-2.0 */
/* tree.h - YAML text to nodes that remember file, line and column.
 *
 * The plain part of YAML: maps, lists and scalars in block and flow style.
 * Anchors, aliases, tags, merge keys, keys that are no text, duplicate keys and
 * several documents are refused, each with its place. */
#ifndef TENREC_YAML_TREE_H
#define TENREC_YAML_TREE_H

#include "yaml/node.h"

#define TREE_MAX_BYTES ((size_t)1 << 20)
#define TREE_MAX_DEPTH 32
#define TREE_MAX_NODES 10000

/* Parses `len` bytes of `text`.
 *
 * where    its kind and name go into every node; in a file line and column come
 *          from the text, elsewhere each node gets `where` as it stands
 * ret      the root, or NULL when the text holds nothing; the caller owns it
 * errors   ECONFIG with the place, ENOMEM
 */
tenrec_status tree_parse(const char *text, size_t len, const struct place *where, struct node **ret,
                         tenrec_error *err);

#endif
