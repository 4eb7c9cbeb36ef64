/* SPDX-License-Identifier: Apache-2.0 */
/* shared_memory.h - memory of tensors that other processes may map: the owner's side.
 *
 * Blocks are parts of regions: many small blocks share a region, a large block has its
 * own. The owners of the parts are recorded in private memory, which no other process can
 * write. A block is counted: a tensor holds it, and so does each loan to another process.
 * After the last release its memory is reused. */
#ifndef TENREC_TENSOR_SHARED_MEMORY_H
#define TENREC_TENSOR_SHARED_MEMORY_H

#include "core/tensor/memfd_region.h"

#include <stdint.h>

struct shared_block;

/* How a message carries a block. */
enum shared_way {
    SHARED_LENT,    /* the receiver maps it for reading; any number of times */
    SHARED_MOVED,   /* the receiver becomes its owner, with a region of its own */
    SHARED_COPIED,  /* as bytes */
    SHARED_PRIVATE, /* lent, mapped copy on write */
};

/* Makes a block of at least `bytes` (> 0) bytes, aligned to a page; contents
 * undefined.
 *
 * way      of the first message that carries it: LENT, MOVED or PRIVATE
 * errors   ENOMEM, EOS (no descriptor left) */
tenrec_status shared_block_new(size_t bytes, enum shared_way way, struct shared_block **ret,
                               tenrec_error *err);

/* Makes a block of a region that was moved here: takes the region always. errors: ENOMEM */
tenrec_status shared_block_adopt(struct memfd_region *region, struct shared_block **ret,
                                 tenrec_error *err);

void *shared_block_data(const struct shared_block *b);
void shared_block_drop(struct shared_block *b); /* NULL is fine */

/* Returns true if there may be blocks. Without a lock. */
bool shared_memory_is_there(void);

/* The block that has all of these bytes, with another reference; NULL: none. */
struct shared_block *shared_block_at(const void *data, uint64_t bytes);

/* Returns true if `b` has all of these bytes; and acquires another reference. The caller
 * knows of a holder. */
bool shared_block_has(const struct shared_block *b, const void *data, uint64_t bytes);
void shared_block_share(struct shared_block *b);

/* The descriptor of its region (borrowed), a number that is unique among all regions of
 * this process, and the offset of `data` in the region. */
int shared_block_fd(const struct shared_block *b);
uint64_t shared_block_region(const struct shared_block *b);
uint64_t shared_block_offset(const struct shared_block *b, const void *data);

/* How the next message carries the block. MOVED and PRIVATE hold for one message; later
 * ones copy. shared_block_stay restores the way when the message was not sent. */
enum shared_way shared_block_way(struct shared_block *b);
void shared_block_stay(struct shared_block *b, enum shared_way way);

/* Returns memory that was idle for a while before `now_ns` to the system; a housekeeping
 * job (housekeeping_at). */
uint64_t shared_memory_trim(uint64_t now_ns);

/* Changes whenever this process forks, before and after it: the child keeps the mappings of that
 * time for as long as it runs, so their memory must not be reused. */
unsigned shared_memory_forks(void);

#endif
