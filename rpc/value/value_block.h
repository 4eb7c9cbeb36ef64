/* SPDX-License-Identifier: Apache-2.0 */
/* value_block.h - one block of memory for a tree of values.
 *
 * Building a tree takes two walks: the first counts, the second fills. Values and map
 * entries are in front, texts and bytes behind them. */
#ifndef TENREC_VALUE_VALUE_BLOCK_H
#define TENREC_VALUE_VALUE_BLOCK_H

#include <stdbool.h>
#include <string.h>
#include <tenrec/value.h>

#define VALUE_DEPTH 64 /* how deep values may be nested */

struct value_block_size {
    size_t items; /* bytes of values and entries */
    size_t text;  /* bytes of texts, with their NULs, and bytes */
    bool tensors; /* at least one */
};

struct value_block {
    char *items;
    char *text;
};

static inline struct value_block value_block_at(void *block, const struct value_block_size *size)
{
    return (struct value_block){ block, (char *)block + size->items };
}

/* Zeroed, so all values are nil until they are filled. */
static inline void *value_block_items(struct value_block *a, size_t n, size_t size)
{
    char *items = a->items;

    memset(items, 0, n * size);
    a->items += n * size;
    return items;
}

/* A copy, with a NUL behind it when `terminated`. */
static inline char *value_block_text(struct value_block *a, const void *text, size_t n,
                                     bool terminated)
{
    char *to = a->text;

    if (n)
        memcpy(to, text, n);
    a->text += n;
    if (terminated)
        *a->text++ = '\0';
    return to;
}

#endif
