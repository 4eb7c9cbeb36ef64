/* SPDX-License-Identifier: Apache-2.0 */
/* mapping.h - a tensor's storage in memory of another process.
 *
 * One tensor that has arrived: its region stays mapped, and dropping the mapping ends the
 * loan, on any thread, also after the connection closed. */
#ifndef TENREC_TENSOR_MAPPING_H
#define TENREC_TENSOR_MAPPING_H

#include "core/tensor/release_page.h"

#include <stdatomic.h>
#include <tenrec/tensor.h>

struct shared_block;

/* A region of the peer; counted. */
struct mapped_region {
    atomic_size_t count;
    struct memfd_region region;
    bool private; /* mapped copy on write */
};

void mapped_region_drop(struct mapped_region *r); /* NULL is fine */

/* The holder's end of the peer's release page; counted. */
struct holding {
    atomic_size_t count;
    struct release_page release_page;
};

void holding_drop(struct holding *h); /* NULL is fine */

struct tenrec_mapping {
    char *data;
    struct shared_block *given;   /* a moved block, now ours; owns */
    struct mapped_region *region; /* of a loan, as `holding`; shares */
    struct holding *holding;
    unsigned slot; /* in the release page */
    size_t bytes;
    unsigned forks; /* shared_memory_forks() when the tensor arrived */
};

void mapping_drop(struct tenrec_mapping *m); /* NULL is fine */

/* For mapping_count. */
void mapping_count_region(const struct mapped_region *r); /* one more */
void mapping_count_tensor(bool one_more);                 /* or one less */

#endif
