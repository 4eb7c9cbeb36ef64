/* SPDX-License-Identifier: Apache-2.0 */
/* arena.h - one block for a tree of values.
 *
 * Who builds a tree walks it twice: the first time to count, the second time
 * to fill. Values and map entries lie in front, texts and bytes behind them. */
#ifndef TENREC_TENSOR_ARENA_H
#define TENREC_TENSOR_ARENA_H

#include <stdbool.h>
#include <string.h>
#include <tenrec/value.h>

#define VALUE_DEPTH 64 /* how deep values may be nested */

struct arena_size {
    size_t items; /* bytes of values and entries */
    size_t text;  /* bytes of texts, with their NULs, and bytes */
    bool tensors; /* at least one */
};

struct arena {
    char *items;
    char *text;
};

static inline struct arena arena_at(void *block, const struct arena_size *size)
{
    return (struct arena){ block, (char *)block + size->items };
}

/* Zeroed, so all are nil until they are filled. */
static inline void *arena_items(struct arena *a, size_t n, size_t size)
{
    char *items = a->items;

    memset(items, 0, n * size);
    a->items += n * size;
    return items;
}

/* A copy, with a NUL behind it when `terminated`. */
static inline char *arena_text(struct arena *a, const void *text, size_t n, bool terminated)
{
    char *to = a->text;

    if (n)
        memcpy(to, text, n);
    a->text += n;
    if (terminated)
        *a->text++ = '\0';
    return to;
}

/* Drops the tensors of `n` values; frees nothing else. */
void values_finish(const struct tenrec_value *v, size_t n);

#endif
