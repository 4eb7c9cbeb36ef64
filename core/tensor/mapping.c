/* SPDX-License-Identifier: Apache-2.0 */
#include "core/tensor/mapping.h"

#include "core/tensor/shared_memory.h"
#include "core/tensor/sharing.h"

#include <stdlib.h>
#include <string.h>

static atomic_size_t regions, bytes, tensors; /* relaxed: counters only */

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

/* Returns the memory to its owner for reuse; unless a child might still read it, or pages written
 * here cannot be dropped. Then the loan ends with the processes that have the mapping. */
static void mapping_return(struct tenrec_mapping *m)
{
    const size_t offset = (size_t)(m->data - m->region->region.base);
    bool ends = m->forks == shared_memory_forks();

    if (ends && m->region->private)
        ends = memfd_region_forget(&m->region->region, offset, m->bytes, NULL) == TENREC_OK;
    /* Before the loan ends: after that the memory belongs to another block. */
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
        mapping_return(m);
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
