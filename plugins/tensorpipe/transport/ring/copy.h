/* SPDX-License-Identifier: Apache-2.0 */
/* copy.h - copying a part of something large.
 *
 * A copy larger than the caches is faster with stores that bypass them: the destination's lines are
 * not read first, and the lines prefetched for the next part stay cached. memcpy cannot detect this
 * case because it is given one part at a time. */
#ifndef TENSORPIPE_COPY_H
#define TENSORPIPE_COPY_H

#include <stddef.h>
#include <string.h>

/* From this length of the whole on it pays (docs/performance.md). */
#define COPY_PAST_CACHES_MIN ((size_t)16 << 20)

void copy_past_caches(void *restrict to, const void *restrict from, size_t len);

/* A part of `whole` bytes. */
static inline void copy_part(void *restrict to, const void *restrict from, size_t len, size_t whole)
{
    if (whole >= COPY_PAST_CACHES_MIN)
        copy_past_caches(to, from, len);
    else
        memcpy(to, from, len);
}

#endif
