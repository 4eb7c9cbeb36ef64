/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c - many small allocations that are freed together. */
#include "core/base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct arena_block {
    struct arena_block *former;
    _Alignas(max_align_t) char bytes[];
};

void *arena_new(struct arena *arena, size_t n, size_t size)
{
    struct arena_block *block;

    if (size && n > (SIZE_MAX - sizeof *block) / size)
        return NULL;
    block = memory_new(1, sizeof *block + n * size);
    if (!block)
        return NULL;
    block->former = arena->last;
    arena->last = block;
    arena->bytes += sizeof *block + n * size;
    return block->bytes;
}

char *arena_text(struct arena *arena, const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = arena_new(arena, n, 1);

    if (copy)
        memcpy(copy, text, n);
    return copy;
}

void arena_finish(struct arena *arena)
{
    while (arena->last) {
        struct arena_block *former = arena->last->former;
        free(arena->last);
        arena->last = former;
    }
    arena->bytes = 0;
}
