/* SPDX-License-Identifier: Apache-2.0 */
/* offers.h - regions that a worker offers. Each has a head, which is only read, and blocks, which
 * peers lease. A block is written at most once, by the holder of its lease, so its bytes are known:
 * they follow from the id of the call that writes it (pattern_fill). */
#ifndef SOAK_OFFERS_H
#define SOAK_OFFERS_H

#include "caller.h"

#include <tenrec/region.h>

enum { BLOCKS_MAX = 48 };

struct offer {
    struct offer *next;
    struct tenrec_region *region;
    struct tenrec_tensor *memory;
    uint64_t id; /* of the owner's pattern */
    int64_t head, block, n_blocks, n_leased;
    uint64_t writer[BLOCKS_MAX];
    int64_t written; /* a block that its writer has reported, or -1 */
    int64_t end_ms, first_revoke_ms, quiet_ms;
    uint32_t sum; /* once it is quiet */
    size_t users; /* threads of functions, which its end waits for */
    bool revoked, quiet;
};

/* Those of this worker. */
extern struct offers {
    pthread_mutex_t lock;  /* guards all here, and the fields of offers that change */
    pthread_cond_t unused; /* an offer has no users left */
    struct offer *first;
    size_t n;    /* with those that are being made */
    bool closed; /* gives no leases */
} offers;

/* The call "offer" of an id returns these numbers in this order. */
struct offer_lease {
    struct tenrec_region_ref ref;
    int64_t owner;               /* the id of the bytes that all have at first */
    int64_t head, block;         /* bytes of the head, and of each block behind it */
    int64_t first, n;            /* the leased blocks */
    int64_t written, written_by; /* a block that was written well, or -1, and its writer's id */
};

int64_t offers_now_ms(void);

static inline uint64_t offer_block_at(const struct offer *o, int64_t i)
{
    return (uint64_t)(o->head + i * o->block);
}

static inline const char *offer_bytes(const struct offer *o)
{
    return tenrec_tensor_data(o->memory);
}

/* Revokes it, as a call of the ledger; checks its bytes if none can change any more. */
tenrec_status offer_revoke(struct offer *o, int64_t ms);

#endif
