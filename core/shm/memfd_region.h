/* SPDX-License-Identifier: Apache-2.0 */
/* memfd_region.h - memory that other processes may map.
 *
 * A region is a memfd, mapped as a whole. Its size is sealed: no process can
 * make another one fault by cutting it. What others get is a descriptor; who
 * may only read gets one that cannot be mapped for writing. */
#ifndef TENREC_SHM_MEMFD_REGION_H
#define TENREC_SHM_MEMFD_REGION_H

#include <stdbool.h>
#include <tenrec/error.h>

struct memfd_region {
    char *base;
    size_t bytes;
    int fd; /* to give to others; -1: was not kept */
};

/* PRIVATE, for memfd_region_map only: to be written, but what is written is a copy of this
 * process alone, page by page. */
enum memfd_region_access { REGION_READ, REGION_WRITE, REGION_PRIVATE };

size_t memfd_region_page(void); /* bytes of a page */

/* Makes one of `bytes` bytes, rounded up to pages, which we may write; pages
 * come with their first use.
 *
 * access   what others may do with its descriptor
 * errors   ENOMEM, EOS (no memfd, no descriptor left) */
tenrec_status memfd_region_make(size_t bytes, enum memfd_region_access access,
                                struct memfd_region *ret, tenrec_error *err);

/* Maps one that came from another process, and trusts nothing about it: only a
 * sealed memfd with plain pages is taken.
 *
 * fd       taken on success only; the mapping does not need it
 * errors   EPROTOCOL (no such thing), ENOMEM, EOS */
tenrec_status memfd_region_map(int fd, enum memfd_region_access access, struct memfd_region *ret,
                               tenrec_error *err);

/* From now on the descriptor cannot be mapped for writing by those it is given to. */
void memfd_region_restrict(struct memfd_region *r);

/* Gives the system the whole pages of a part of a region that we may write;
 * they read as zeros afterwards, for all who have mapped it. */
void memfd_region_discard(const struct memfd_region *r, size_t offset, size_t bytes);

/* Of one that was mapped PRIVATE: whole pages of a part read as those of their owner again,
 * whatever was written. errors: EOS */
tenrec_status memfd_region_forget(const struct memfd_region *r, size_t offset, size_t bytes,
                                  tenrec_error *err);

void memfd_region_close(struct memfd_region *r); /* zeroed or closed is fine */

#endif
