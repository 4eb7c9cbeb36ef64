/* SPDX-License-Identifier: Apache-2.0 */
/* bulk_bytes.c - the local bytes of a request: in use until their last tensor is dropped. */
#include "rpc/region/bulk.h"

#include "core/tensor/tensor.h"
#include "rpc/call/service.h"

void bulk_free_one(struct bulk *b)
{
    if (atomic_fetch_sub(&b->local, 1) == 1)
        bulk_complete(b->free, NULL);
}

tenrec_status bulk_entry_fill(struct region_bytes *b, const struct tenrec_bulk *e,
                              tenrec_error *err)
{
    struct tenrec_tensor *local;
    tenrec_status st = call_begin_into(e->local, &local, err);

    if (st != TENREC_OK)
        return st;
    *b = (struct region_bytes){ tenrec_tensor_share(local), e->local_offset, e->bytes, NULL };
    call_end_into(e->local, local);
    return region_bytes_stage(b, err);
}

void bulk_bytes_end(struct bulk_request *r)
{
    if (atomic_fetch_sub(&r->used, 1) != 1)
        return;
    for (size_t i = 0; i < r->n; i++) {
        region_bytes_unstage(&r->entry[i]);
        tenrec_tensor_drop(r->entry[i].of);
    }
    bulk_free_one(r->bulk);
    bulk_drop(r->bulk);
}

static void bulk_bytes_drop(void *arg, void *data)
{
    (void)data;
    bulk_bytes_end(arg);
}

/* The tensor of the bytes of an entry. The caller has a use of the bytes. */
static tenrec_status bulk_bytes_new(struct bulk_request *r, size_t i, struct tenrec_tensor **ret,
                                    tenrec_error *err)
{
    tenrec_status st = region_bytes_new(&r->entry[i], bulk_bytes_drop, r, ret, err);

    if (st == TENREC_OK)
        atomic_fetch_add(&r->used, 1);
    return st;
}

tenrec_status bulk_bytes_of(struct bulk_request *r, size_t n, struct tenrec_tensor **ret,
                            tenrec_error *err)
{
    tenrec_status st = TENREC_OK;
    size_t i = 0;

    while (i < n && st == TENREC_OK) {
        st = bulk_bytes_new(r, i, &ret[i], err);
        i += st == TENREC_OK;
    }
    while (st != TENREC_OK && i > 0)
        tenrec_tensor_drop(ret[--i]);
    return st;
}

/* Returns true if the bytes of an answer are being copied to their device: the copies end the call.
 */
static bool bulk_is_copied(const struct bulk_request *r)
{
    return atomic_load(&r->arrived) && region_bytes_staged(r->entry, r->n);
}

/* Memory for the bytes of an answer that arrives again during the copies. */
static tenrec_status bulk_into_spare(const struct bulk_request *r, struct dispatch_into *ret,
                                     tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (ret->n = 0; ret->n < r->n && st == TENREC_OK; ret->n += st == TENREC_OK) {
        const int64_t bytes = (int64_t)r->entry[ret->n].bytes;
        st = tenrec_tensor_new(TENREC_UINT8, 1, &bytes, &ret->tensor[ret->n], err);
    }
    return st;
}

tenrec_status bulk_into(struct tenrec_tensor *first, uint32_t n, struct dispatch_into *ret,
                        tenrec_error *err)
{
    struct bulk_request *r = tensor_free_arg(first, bulk_bytes_drop);
    tenrec_status st;

    if (!r || r->n != n)
        return TENREC_OK;
    if (bulk_is_copied(r))
        return bulk_into_spare(r, ret, err);
    st = bulk_bytes_of(r, n, ret->tensor, err);
    ret->n = st == TENREC_OK ? n : 0;
    return st;
}

bool bulk_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_tensor *first,
                  struct tenrec_msg *msg)
{
    struct bulk_request *r = tensor_free_arg(first, bulk_bytes_drop);

    if (r && bulk_is_copied(r)) {
        msg->release(msg);
        return true;
    }
    if (!r || msg->n_tensors != r->n || !rpc_message_owner(msg, 0) ||
        tensor_free_arg(rpc_message_owner(msg, 0), bulk_bytes_drop) != r)
        return false;
    atomic_store(&r->arrived, true);
    if (!region_bytes_staged(r->entry, r->n))
        return false;
    bulk_copy_in(w, r, from, msg);
    return true;
}
