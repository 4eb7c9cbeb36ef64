/* SPDX-License-Identifier: Apache-2.0 */
/* node.h - a value of the configuration and the position where it was written, and YAML text parsed
 * into such values. */
#ifndef TENREC_CONFIG_NODE_H
#define TENREC_CONFIG_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <tenrec/error.h>

/* Weakest first: a stronger source overrides a weaker one. */
enum position_kind {
    POSITION_DEFAULT,
    POSITION_FILE,
    POSITION_ENVIRONMENT,
    POSITION_CODE,
    POSITION_SETTING
};

/* Where a value was written. */
struct position {
    enum position_kind kind;
    const char *name; /* of the file or variable, borrowed from the node's maker */
    unsigned line;    /* from 1; in files only */
    unsigned column;  /* from 1 */
};

#define POSITION_TEXT_MAX 256

/* "cluster.yaml:9:3", "environment TENREC_BACKEND", "code",
 * "setting" (of a running worker) or "default", cut
 * when longer than `buf`. Returns `buf`. */
const char *position_text(const struct position *where, char buf[POSITION_TEXT_MAX]);

/* tenrec_fail with "POSITION: " before the text (nothing for a default). */
TENREC_PRINTF(4, 5)
tenrec_status position_fail(tenrec_error *err, tenrec_status code, const struct position *where,
                            const char *fmt, ...);

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };

enum node_style {
    NODE_PLAIN,
    NODE_QUOTED,   /* always text, never a number */
    NODE_RAW,      /* from a variable or from code: parsed once the type is known */
    NODE_LEFT_OUT, /* an item of a list whose mistake is known: the others keep their numbers */
};

/* A tree: each node owns its texts and its children. */
struct node {
    enum node_kind kind;
    enum node_style style;
    struct position where;
    char *text;                /* of a scalar, never NULL there */
    char *key;                 /* in a map, else NULL */
    struct position key_where; /* of the key */
    struct node **item;        /* of a list or map, in file order */
    size_t n;
};

/* NULL: out of memory, as for all functions here that return a new node. */
struct node *node_new(enum node_kind kind, const struct position *where);
struct node *node_scalar(const char *text, enum node_style style, const struct position *where);
struct node *node_copy(const struct node *node);
void node_drop(struct node *node); /* NULL is fine */

/* Takes `child` always, also on ENOMEM. */
tenrec_status node_add(struct node *parent, struct node *child);

/* The same under a key that `map` does not have yet. */
tenrec_status node_add_key(struct node *map, const char *key, const struct position *key_where,
                           struct node *child);

/* The value of `key`, borrowed; NULL when `map` lacks the key or is no map. */
struct node *node_get(const struct node *map, const char *key);

/* Moves the value of `key` out of `map` to the caller, the new owner. NULL: no such key. */
struct node *node_take(struct node *map, const char *key);

/* "a map", "a list", "'text'", "nothing": for "expected X, found Y". */
const char *node_describe(const struct node *node, char *buf, size_t size);

/* Returns true for a plain scalar that YAML reads as null, such as `~` or no text at all. */
bool node_is_null(const struct node *node);

/* YAML text, parsed into nodes with file, line and column.
 *
 * The plain part of YAML: maps, lists and scalars in block and flow style.
 * Anchors, aliases, tags, merge keys, keys that are not text, duplicate keys and
 * several documents are refused, each with its position. */

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
