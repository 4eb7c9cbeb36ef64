/* SPDX-License-Identifier: Apache-2.0 */
/* sharing.h - what the two ends of a connection have of each other's memory.
 *
 * As owner it lends blocks (shared_memory.h): the peer gets the region's
 * descriptor with the first loan of it, and the release page's (shm/release_page.h) with the
 * first loan of all. As holder it maps what comes. docs/shared-memory.md has the
 * whole of it. */
#ifndef TENREC_SHM_SHARING_H
#define TENREC_SHM_SHARING_H

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

/* Takes back what peers have let go of, and what the dead had. Before memory is
 * asked for, and by itself now and then while something is lent. Returns when to
 * look again; CLOCK_NEVER: nothing is lent. */
uint64_t sharing_collect(uint64_t now_ns);

/* Blocks that are lent, by all connections of the process. */
size_t sharing_lent(void);

#endif
