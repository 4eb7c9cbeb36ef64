/* SPDX-License-Identifier: Apache-2.0 */
/* sharing.h - the shared memory of a connection: loans to the peer and from the peer.
 *
 * The owner lends blocks (shared_memory.h): the peer gets a region's descriptor with the
 * first loan from it, and those of the release page (release_page.h) with the first loan
 * of all. The holder maps the received memory. docs/shared-memory.md has the protocol. */
#ifndef TENREC_TENSOR_SHARING_H
#define TENREC_TENSOR_SHARING_H

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

#endif
