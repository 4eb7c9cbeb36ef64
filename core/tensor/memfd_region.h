/* SPDX-License-Identifier: Apache-2.0 */
/* memfd_region.h - memory that other processes may map.
 *
 * A region is a memfd, mapped as a whole. Its size is sealed: no process can make another
 * one fault by shrinking it. Other processes get a descriptor; a reader's descriptor cannot
 * be mapped for writing. */
#ifndef TENREC_TENSOR_MEMFD_REGION_H
#define TENREC_TENSOR_MEMFD_REGION_H

#include <stdbool.h>
#include <tenrec/error.h>

struct memfd_region {
    char *base;
    size_t bytes;
    int fd; /* for other processes; -1: was not kept */
};

/* PRIVATE, for memfd_region_map only: mapped copy on write. */
enum memfd_region_access { REGION_READ, REGION_WRITE, REGION_PRIVATE };

size_t memfd_region_page(void); /* bytes of a page */

/* Makes a region of `bytes` bytes, rounded up to pages, writable here; pages are
 * allocated with their first use.
 *
 * access   of other processes by the descriptor
 * errors   ENOMEM, EOS (no memfd, no descriptor left) */
tenrec_status memfd_region_make(size_t bytes, enum memfd_region_access access,
                                struct memfd_region *ret, tenrec_error *err);

/* Maps a region of another process without trusting it: accepts only a sealed memfd
 * with plain pages.
 *
 * fd       taken on success only; the mapping does not need it
 * errors   EPROTOCOL (not such a memfd), ENOMEM, EOS */
tenrec_status memfd_region_map(int fd, enum memfd_region_access access, struct memfd_region *ret,
                               tenrec_error *err);

/* Makes the descriptor read-only for other processes. */
void memfd_region_restrict(struct memfd_region *r);

/* Returns the whole pages of a part of a writable region to the system; they read as
 * zeros afterwards, in all processes that have mapped it. */
void memfd_region_discard(const struct memfd_region *r, size_t offset, size_t bytes);

/* Drops the private copies of the pages of a part of a PRIVATE region, which read as the
 * owner's again. errors: EOS */
tenrec_status memfd_region_forget(const struct memfd_region *r, size_t offset, size_t bytes,
                                  tenrec_error *err);

void memfd_region_close(struct memfd_region *r); /* zeroed or closed is fine */

#endif
