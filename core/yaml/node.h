/* SPDX-License-Identifier: Apache-2.0 */
/* node.h - a value that remembers where it was written. */
#ifndef TENREC_YAML_NODE_H
#define TENREC_YAML_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <tenrec/error.h>

/* Weakest first: a stronger source overrides a weaker one. */
enum place_kind { PLACE_DEFAULT, PLACE_FILE, PLACE_ENVIRONMENT, PLACE_CODE };

/* Where something was written. */
struct place {
    enum place_kind kind;
    const char *name; /* of the file or variable, borrowed from who made the node */
    unsigned line;    /* from 1; in files only */
    unsigned column;  /* from 1 */
};

#define PLACE_TEXT_MAX 256

/* "cluster.yaml:9:3", "environment TENREC_BACKEND", "code" or "default", cut
 * when longer than `buf`. Returns `buf`. */
const char *place_text(const struct place *place, char buf[PLACE_TEXT_MAX]);

/* tenrec_fail with "PLACE: " before the text (nothing for a default). */
TENREC_PRINTF(4, 5)
tenrec_status place_fail(tenrec_error *err, tenrec_status code, const struct place *place,
                         const char *fmt, ...);

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };

enum node_style {
    NODE_PLAIN,
    NODE_QUOTED, /* text for sure, never a number */
    NODE_RAW,    /* of a variable or from code: whoever knows the type reads it */
};

/* A tree: each node owns its texts and its children. */
struct node {
    enum node_kind kind;
    enum node_style style;
    struct place place;
    char *text;             /* of a scalar, never NULL there */
    char *key;              /* in a map, else NULL */
    struct place key_place; /* of the key */
    struct node **item;     /* of a list or map, in file order */
    size_t n;               /* how many */
};

/* NULL: out of memory, as all that return a node here. */
struct node *node_new(enum node_kind kind, const struct place *place);
struct node *node_scalar(const char *text, enum node_style style, const struct place *place);
struct node *node_copy(const struct node *node);
void node_drop(struct node *node); /* NULL is fine */

/* Takes `child` always, also when it fails with ENOMEM. */
tenrec_status node_add(struct node *parent, struct node *child);

/* The same under a key that `map` does not have yet. */
tenrec_status node_add_key(struct node *map, const char *key, const struct place *key_place,
                           struct node *child);

/* The value of `key`, borrowed; NULL when there is none or `map` is no map. */
struct node *node_get(const struct node *map, const char *key);

/* Takes the value of `key` out of `map`; the caller owns it. NULL: not there. */
struct node *node_take(struct node *map, const char *key);

/* "a map", "a list", "'text'", "nothing": for "expected X, found Y". */
const char *node_describe(const struct node *node, char *buf, size_t size);

/* A plain scalar that YAML reads as null, such as `~` or nothing at all. */
bool node_is_null(const struct node *node);

#endif
