/* SPDX-License-Identifier: Apache-2.0 */
/* recycle.h - freed blocks that a thread keeps for its next use, of a few kinds that each call
 * needs.
 *
 * Often one thread makes the blocks and another frees them: a depot for each kind returns them, in
 * batches.
 *
 * Off under AddressSanitizer, from which recycling would hide a use after free,
 * and with -DRECYCLE=0, for valgrind. */
#ifndef TENREC_BASE_RECYCLE_H
#define TENREC_BASE_RECYCLE_H

#include <stddef.h>

#include "core/base/threads.h"

#if defined(__SANITIZE_ADDRESS__)
#define RECYCLE 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RECYCLE 0
#endif
#endif
#ifndef RECYCLE
#define RECYCLE 1
#endif

/* The blocks of a kind have one size, and come from malloc. */
enum recycle_kind { RECYCLE_MESSAGES, RECYCLE_FUTURES, RECYCLE_KINDS };

#define RECYCLE_BATCH 32u /* blocks that move between a thread and a depot at once */
#define RECYCLE_MAX (2 * RECYCLE_BATCH)

/* The first word of a free block is the next block. */
struct recycle_list {
    void **first;
    unsigned n;
};

struct recycle_cache {
    struct recycle_list of[RECYCLE_KINDS];
    struct thread_end end;
};

/* Small, and used for every message: worth the static TLS block. */
extern _Thread_local struct recycle_cache recycle_cache STATIC_TLS;

/* A block that this thread has; NULL: it has none. */
static inline void *recycle_pop(enum recycle_kind kind)
{
    struct recycle_list *l = &recycle_cache.of[kind];
    void **block = l->first;

    if (block) {
        l->first = *block;
        l->n--;
    }
    return block;
}

/* For a thread that has none: a block from the depot. NULL: use malloc. */
void *recycle_fetch(enum recycle_kind kind);

/* Makes room for a block more, of which the thread has too many, or none so far. */
bool recycle_make_room(enum recycle_kind kind);

/* Keeps a block. Returns false if it is to be freed. */
static inline bool recycle_push(enum recycle_kind kind, void *block)
{
    struct recycle_list *l = &recycle_cache.of[kind];

    if (!RECYCLE ||
        (unlikely(!recycle_cache.end.fn || l->n == RECYCLE_MAX) && !recycle_make_room(kind)))
        return false;
    *(void **)block = l->first;
    l->first = block;
    l->n++;
    return true;
}

#endif
