/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/gather/gather_set.h"

size_t gather_tree_parent(const struct gather_tree *t, size_t i)
{
    return (i - 1) / t->degree;
}

size_t gather_tree_children(const struct gather_tree *t, size_t i, size_t *ret_first)
{
    const size_t first = i * t->degree + 1;

    *ret_first = first;
    if (first >= t->n)
        return 0;
    return t->n - first < t->degree ? t->n - first : t->degree;
}

/* Level by level: the children of neighbours are neighbours. */
size_t gather_tree_size(const struct gather_tree *t, size_t i)
{
    size_t size = 0;

    for (size_t first = i, last = i; first < t->n;) {
        size += (last < t->n ? last : t->n - 1) - first + 1;
        first = first * t->degree + 1;
        last = last * t->degree + t->degree;
    }
    return size;
}

unsigned gather_tree_height(const struct gather_tree *t, size_t i)
{
    unsigned height = 0;

    for (size_t first = i * t->degree + 1; first < t->n; first = first * t->degree + 1)
        height++;
    return height;
}
