/* SPDX-License-Identifier: Apache-2.0 */
/* sharing_inside.h - for sharing.c and sharing_in.c only. */
#ifndef TENREC_TENSOR_SHARING_INSIDE_H
#define TENREC_TENSOR_SHARING_INSIDE_H

#include "core/tensor/mapping.h"
#include "core/tensor/sharing.h"

#include <pthread.h>

#define SHARING_REGIONS 32   /* of ours that a peer has mapped, at most */
#define SHARING_ALIGNMENT 64 /* bytes; of shared data in its region, as of any tensor */

struct shared_block;

struct tenrec_sharing {
    pthread_mutex_t lock; /* guards all but `next` */

    /* Loans to the peer. */
    bool lends; /* the release page was made, and was sent or is being sent */
    struct release_page release_page;
    struct shared_block *lent[RELEASE_PAGE_SLOTS]; /* shares; by slot */
    size_t n_lent;
    unsigned next_slot;              /* where the search for a free slot begins */
    unsigned last_slot;              /* of the last loan */
    uint64_t known[SHARING_REGIONS]; /* shared_block_region of the regions that the peer has */
    uint64_t used[SHARING_REGIONS];  /* of their last use, by `clock` */
    uint64_t clock;
    bool closed;
    struct tenrec_sharing *next;

    /* Loans from the peer. */
    struct holding *holding;                       /* shares; NULL until the release page arrived */
    struct mapped_region *mapped[SHARING_REGIONS]; /* shares */
};

/* A record as it is sent; little endian. */
struct share_record_bytes {
    uint8_t kind, flags, region, zero;
    uint16_t slot, zeros;
    uint64_t offset;
};
enum share_record_kind {
    RECORD_LENT = 1,
    RECORD_MOVED = 2,
    RECORD_PRIVATE = 3, /* lent, to be mapped copy on write; all of its region is */
};
enum share_record_flags {
    RECORD_REGION = 1,       /* with the region's descriptor */
    RECORD_RELEASE_PAGE = 2, /* with the two of the release page, before that */
};

/* A record as it is used. */
struct share_record {
    unsigned kind, flags, region, slot;
    uint64_t offset;
};

/* Reads the record, unchecked. */
struct share_record sharing_record(const struct tenrec_share *share);

/* Drops the connection's references to the peer's memory. The caller holds the lock. */
void sharing_in_close(struct tenrec_sharing *s);

#endif
