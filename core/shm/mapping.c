/* SPDX-License-Identifier: Apache-2.0 */
#include "shm/mapping.h"

#include "shm/shared_memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static atomic_size_t regions, bytes, tensors; /* relaxed: for people */

static atomic_uint forks;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Before and after, so that what comes in between differs, too; and so does all that the
 * child has of its parent's. */
static void count_fork(void)
{
    atomic_fetch_add(&forks, 1);
}

static void watch_forks(void)
{
    pthread_atfork(count_fork, count_fork, count_fork);
}

unsigned mapping_forks(void)
{
    pthread_once(&once, watch_forks);
    return atomic_load(&forks);
}

void mapping_count_region(const struct mapped_region *r)
{
    atomic_fetch_add_explicit(&regions, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&bytes, r->region.bytes, memory_order_relaxed);
}

void mapping_count_tensor(bool one_more)
{
    atomic_fetch_add_explicit(&tensors, one_more ? 1 : (size_t)-1, memory_order_relaxed);
}

struct mapping_counts mapping_count(void)
{
    return (struct mapping_counts){ atomic_load(&regions), atomic_load(&bytes),
                                    atomic_load(&tensors) };
}

void mapped_region_drop(struct mapped_region *r)
{
    if (!r || atomic_fetch_sub_explicit(&r->count, 1, memory_order_acq_rel) != 1)
        return;
    atomic_fetch_sub_explicit(&regions, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&bytes, r->region.bytes, memory_order_relaxed);
    memfd_region_close(&r->region);
    free(r);
}

void holding_drop(struct holding *h)
{
    if (!h || atomic_fetch_sub_explicit(&h->count, 1, memory_order_acq_rel) != 1)
        return;
    release_page_close(&h->release_page);
    free(h);
}

/* The owner uses it again from then on; unless a child might still read it, or what was
 * written here stays in its place. Then it comes back when all who have it end. */
static void give_back(struct tenrec_mapping *m)
{
    const size_t offset = (size_t)(m->data - m->region->region.base);
    bool ends = m->forks == mapping_forks();

    if (ends && m->region->private)
        ends = memfd_region_forget(&m->region->region, offset, m->bytes, NULL) == TENREC_OK;
    /* Before the release page is told: after that the memory is another's. */
    mapped_region_drop(m->region);
    if (ends)
        release_page_end(&m->holding->release_page, m->slot);
}

void mapping_drop(struct tenrec_mapping *m)
{
    if (!m)
        return;
    shared_block_drop(m->given);
    if (m->holding)
        give_back(m);
    holding_drop(m->holding);
    free(m);
}

bool mapping_is_writable(const struct tenrec_mapping *m)
{
    return !m->region || m->region->private;
}

void mapping_copy(struct tenrec_tensor_desc *d)
{
    if (!d->mapping)
        return;
    if (d->bytes)
        memcpy(d->data, d->mapping->data, (size_t)d->bytes);
    mapping_drop(d->mapping);
    d->mapping = NULL;
}
