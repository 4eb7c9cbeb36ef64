/* SPDX-License-Identifier: Apache-2.0 */
/* arena.h - many small allocations that are freed together. */
#ifndef TENREC_BASE_ARENA_H
#define TENREC_BASE_ARENA_H

#include <stddef.h>

/* Zeroed is empty. */
struct arena {
    struct arena_block *last;
    size_t bytes; /* of all allocations, and of what each takes beside them */
};

/* Zeroed, aligned for any type; NULL: out of memory, or n * size overflows. */
void *arena_new(struct arena *arena, size_t n, size_t size);
char *arena_text(struct arena *arena, const char *text);

/* Frees all; the arena is empty again. */
void arena_finish(struct arena *arena);

#endif
