/* SPDX-License-Identifier: Apache-2.0 */
/* shared_memory.h - memory of tensors that other processes may map: the side of
 * its owner.
 *
 * Blocks lie in regions: many small ones share one, a large one has its own.
 * Which part of a region is whose is known here only, in private memory; nobody
 * else can write that. A block is counted: a tensor holds it, and so does each
 * loan to another process. When the last one lets go its memory is used again. */
#ifndef TENREC_SHM_SHARED_MEMORY_H
#define TENREC_SHM_SHARED_MEMORY_H

#include "shm/memfd_region.h"

#include <stdint.h>

struct shared_block;

/* How a message carries a block. */
enum shared_way {
    SHARED_LENT,    /* the receiver reads it; any number of times */
    SHARED_MOVED,   /* it is the receiver's, with a region of its own */
    SHARED_COPIED,  /* not at all */
    SHARED_PRIVATE, /* lent, and the receiver writes into copies of its pages */
};

/* Makes a block of at least `bytes` (> 0) bytes, aligned to a page; contents
 * undefined.
 *
 * way      what the first message that carries it does: LENT, MOVED or PRIVATE
 * errors   ENOMEM, EOS (no descriptor left) */
tenrec_status shared_block_new(size_t bytes, enum shared_way way, struct shared_block **ret,
                               tenrec_error *err);

/* A block that was given to us: takes the region always. errors: ENOMEM */
tenrec_status shared_block_adopt(struct memfd_region *region, struct shared_block **ret,
                                 tenrec_error *err);

void *shared_block_data(const struct shared_block *b);
void shared_block_drop(struct shared_block *b); /* NULL is fine */

/* Are there any blocks? Without a lock. */
bool shared_memory_is_there(void);

/* The block that has all of these bytes, shared once more; NULL: none. */
struct shared_block *shared_block_at(const void *data, uint64_t bytes);

/* Does it have all of these bytes? Somebody holds it. And: shares it once more. */
bool shared_block_has(const struct shared_block *b, const void *data, uint64_t bytes);
void shared_block_share(struct shared_block *b);

/* Where it lies: the descriptor of its region (borrowed), a number that no other
 * region of this process has or had, and how far from the region's beginning
 * `data` is. */
int shared_block_fd(const struct shared_block *b);
uint64_t shared_block_region(const struct shared_block *b);
uint64_t shared_block_offset(const struct shared_block *b, const void *data);

/* What becomes of it with the next message that carries it. What is not lent goes so
 * once, and is copied from then on; shared_block_stay says that it did not go after all. */
enum shared_way shared_block_way(struct shared_block *b);
void shared_block_stay(struct shared_block *b, enum shared_way way);

struct shared_counts {
    size_t regions, bytes; /* mapped, used or not */
    size_t blocks;
    size_t private_bytes; /* of blocks that are or were PRIVATE */
};
struct shared_counts shared_memory_count(void);

/* Gives the system what was not used for a while before `now_ns`; runs by
 * itself while a worker does (base/upkeep.h). */
uint64_t shared_memory_trim(uint64_t now_ns);

/* The pool may keep less than before: gives the system what is too much. */
void shared_memory_shrink(void);

#endif
