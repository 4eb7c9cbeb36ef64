/* SPDX-License-Identifier: Apache-2.0 */
/* sharing.h - the shared memory of a connection: loans to the peer and from the peer.
 *
 * The owner lends blocks (shared_memory.h): the peer gets a region's descriptor with the
 * first loan from it, and those of the release page (release_page.h) with the first loan
 * of all. The holder maps the received memory. docs/internals/shared-memory.md has the protocol.
 * Any thread. */
#ifndef TENREC_TENSOR_SHARING_H
#define TENREC_TENSOR_SHARING_H

#include <stdbool.h>
#include <stddef.h>
#include <tenrec/agent.h>

struct chain_sharing;

/* These are the host functions of the same names. */
struct tenrec_sharing *sharing_open(void);
void sharing_close(struct tenrec_sharing *s);
bool sharing_share(struct tenrec_sharing *s, const struct tenrec_tensor_desc *desc,
                   struct tenrec_share *ret);
void sharing_share_back(struct tenrec_sharing *s, struct tenrec_share *share);
tenrec_status sharing_shared(struct tenrec_sharing *s, struct tenrec_share *share,
                             struct tenrec_tensor_desc *desc, tenrec_error *err);

/* These functions, for a chain. */
extern const struct chain_sharing sharing_of_process;

/* Reclaims ended loans, and those of dead peers. Called before memory is allocated, and
 * periodically while blocks are lent. Returns the time of the next poll; CLOCK_NEVER:
 * nothing is lent. */
uint64_t sharing_collect(uint64_t now_ns);

/* Blocks that are lent, by all connections of the process. */
size_t sharing_lent(void);

/* Received memory (mapping.h). Returns true if this process may write it. */
bool mapping_is_writable(const struct tenrec_mapping *m);

/* Copies the mapped bytes to d->data and drops the mapping; no mapping is fine. */
void mapping_copy(struct tenrec_tensor_desc *d);

/* Of the process: regions of its own (shared_memory.h). */
struct shared_counts {
    size_t regions, bytes; /* mapped, used or not */
    size_t blocks;
    size_t private_bytes; /* of blocks that are or were PRIVATE */
};
struct shared_counts shared_memory_count(void);

/* Returns the memory beyond the pool's reduced limit to the system. */
void shared_memory_shrink(void);

/* Of the process: mapped regions of peers, and tensors in them that are in use. */
struct mapping_counts {
    size_t regions, bytes, tensors;
};
struct mapping_counts mapping_count(void);

#endif
