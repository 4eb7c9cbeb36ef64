#include "rpc/mapping.h"

#include "rpc/shared_memory.h"
#include "rpc/tensor.h"

#include <stdlib.h>

static atomic_size_t regions, bytes, tensors; /* relaxed: for people */

void mapping_count_region(const struct mapped_region *r)
{
    atomic_fetch_add_explicit(&regions, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&bytes, r->region.bytes, memory_order_relaxed);
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
    region_close(&r->region);
    free(r);
}

void holding_drop(struct holding *h)
{
    if (!h || atomic_fetch_sub_explicit(&h->count, 1, memory_order_acq_rel) != 1)
        return;
    ledger_close(&h->ledger);
    free(h);
}

void mapping_drop(struct tenrec_mapping *m)
{
    if (!m)
        return;
    shared_block_drop(m->given);
    /* Before the ledger is told: after that the memory is another's. */
    mapped_region_drop(m->region);
    if (m->holding)
        ledger_end(&m->holding->ledger, m->slot);
    holding_drop(m->holding);
    free(m);
}

static void free_mapping(void *arg, void *data)
{
    (void)data;
    atomic_fetch_sub_explicit(&tensors, 1, memory_order_relaxed);
    mapping_drop(arg);
}

tenrec_status mapping_tensor(struct tenrec_mapping *m, const struct tenrec_tensor_desc *desc,
                             struct tenrec_tensor **ret, tenrec_error *err)
{
    struct tenrec_tensor_desc d = *desc;
    tenrec_status st;

    d.data = m->data;
    d.mapping = NULL;
    if (!m->given)
        d.flags |= TENREC_TENSOR_READ_ONLY;
    st = tensor_from_desc(&d, free_mapping, m, ret, err);
    if (st == TENREC_OK)
        atomic_fetch_add_explicit(&tensors, 1, memory_order_relaxed);
    return st;
}
