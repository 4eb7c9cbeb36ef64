/* SPDX-License-Identifier: Apache-2.0 */
/* sharing_inside.h - for sharing.c and sharing_in.c only. */
#ifndef TENREC_SHM_SHARING_INSIDE_H
#define TENREC_SHM_SHARING_INSIDE_H

#include "shm/mapping.h"
#include "shm/sharing.h"

#include <pthread.h>

#define SHARING_REGIONS 32   /* that a peer has of ours at one time */
#define SHARING_ALIGNMENT 64 /* bytes; of what is shared in its region, as of any tensor */

struct shared_block;

struct tenrec_sharing {
    pthread_mutex_t lock; /* guards all but `next` */

    /* What the peer has of ours. */
    bool lends; /* the release page was made, and the peer has it or gets it */
    struct release_page release_page;
    struct shared_block *lent[RELEASE_PAGE_SLOTS]; /* shares; by slot */
    size_t n_lent;
    unsigned next_slot;              /* where to look for a free one */
    unsigned last_slot;              /* of the last loan */
    uint64_t known[SHARING_REGIONS]; /* shared_block_region of what the peer has mapped */
    uint64_t used[SHARING_REGIONS];  /* when it was used last, by `clock` */
    uint64_t clock;
    bool closed;
    struct tenrec_sharing *next;

    /* What we have of the peer's. */
    struct holding *holding;                       /* shares; NULL until its release page came */
    struct mapped_region *mapped[SHARING_REGIONS]; /* shares */
};

/* A record, 16 bytes: kind, flags, region, 0, slot (2, little endian), 0, 0,
 * offset (8, little endian). */
enum record_kind {
    RECORD_LENT = 1,
    RECORD_MOVED = 2,
    RECORD_PRIVATE = 3, /* lent, to be mapped copy on write; all of its region is */
};
enum record_flags {
    RECORD_REGION = 1, /* the region's descriptor comes with it */
    RECORD_LEDGER = 2, /* before that the two of the release page */
};

struct record {
    unsigned kind, flags, region, slot;
    uint64_t offset;
};

/* What stands in it; nothing of that is checked. */
struct record sharing_record(const struct tenrec_share *share);

/* Lets go of what we have of the peer's; with the lock. */
void sharing_in_close(struct tenrec_sharing *s);

#endif
