/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 1024 }; /* bytes */
enum { GROW_FIRST = 8 };

void *memory_new(size_t n, size_t size)
{
    const size_t bytes = n * size;
    void *p;

    /* The C library's calloc bypasses its per-thread cache: for small blocks,
     * which every call needs, malloc is several times faster. */
    if (n >= SMALL || size >= SMALL || bytes > SMALL)
        return calloc(n ? n : 1, size ? size : 1);
    p = malloc(bytes ? bytes : 1);
    if (p)
        memset(p, 0, bytes);
    return p;
}

void *memory_resize(void *old, size_t n, size_t size)
{
    if (n == 0 || size == 0)
        n = size = 1;
    if (n > SIZE_MAX / size)
        return NULL;
    return realloc(old, n * size);
}

void *memory_grow(void *list, size_t n, size_t *room, size_t size)
{
    const size_t more = *room ? *room * 2 : GROW_FIRST;
    void *grown;

    if (n < *room)
        return list;
    grown = memory_resize(list, more, size);
    if (grown)
        *room = more;
    return grown;
}

char *memory_text_n(const char *text, size_t n)
{
    char *copy = memory_new(n + 1, 1);

    if (copy)
        memcpy(copy, text, n);
    return copy;
}

char *memory_text(const char *text)
{
    return memory_text_n(text, strlen(text));
}
