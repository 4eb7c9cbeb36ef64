/* SPDX-License-Identifier: Apache-2.0 */
#include "region_support.h"
#include "../testing.h"

#include <tenrec/observe.h>

struct tenrec_tensor *bytes_new(int64_t n, unsigned first)
{
    struct tenrec_tensor *t = NULL;
    unsigned char *at;
    tenrec_error err;

    assert_status(tenrec_tensor_new(TENREC_UINT8, 1, &n, &t, &err), &err);
    at = tenrec_tensor_data(t);
    for (int64_t i = 0; i < n; i++)
        at[i] = (unsigned char)(first + (unsigned)i);
    return t;
}

/* The thread of the owner may have received the bytes, and its answer arrived by a socket since:
 * plugins call the kernel directly, so TSan does not see the order. */
__attribute__((no_sanitize("thread"))) bool bytes_are(const struct tenrec_tensor *t, uint64_t at,
                                                      uint64_t n, unsigned first)
{
    const unsigned char *byte = tenrec_tensor_data(t);

    for (uint64_t i = 0; i < n; i++)
        if (byte[at + i] != (unsigned char)(first + (unsigned)i))
            return false;
    return true;
}

struct tenrec_region *region_of(struct tenrec_worker *w, struct tenrec_tensor *t, uint32_t rights)
{
    struct tenrec_region *r = NULL;
    tenrec_error err;

    assert_status(tenrec_region_new(w, t, rights, &r, &err), &err);
    return r;
}

struct tenrec_region_ref ref_of(const struct tenrec_region *r)
{
    struct tenrec_region_ref ref;

    tenrec_region_describe(r, &ref);
    return ref;
}

static struct tenrec_bulk entry(uint32_t direction, const struct tenrec_region_ref *ref,
                                uint64_t offset, uint64_t bytes, struct tenrec_tensor *local,
                                uint64_t local_offset)
{
    return (struct tenrec_bulk){ .size = sizeof(struct tenrec_bulk),
                                 .direction = direction,
                                 .remote = *ref,
                                 .remote_offset = offset,
                                 .bytes = bytes,
                                 .local = local,
                                 .local_offset = local_offset };
}

struct tenrec_bulk reading(const struct tenrec_region_ref *ref, uint64_t offset, uint64_t bytes,
                           struct tenrec_tensor *local, uint64_t local_offset)
{
    return entry(TENREC_BULK_READ, ref, offset, bytes, local, local_offset);
}

struct tenrec_bulk writing(const struct tenrec_region_ref *ref, uint64_t offset, uint64_t bytes,
                           struct tenrec_tensor *local, uint64_t local_offset)
{
    return entry(TENREC_BULK_WRITE, ref, offset, bytes, local, local_offset);
}

tenrec_status transfer(struct tenrec_worker *w, const struct tenrec_bulk *entries, size_t n,
                       tenrec_error *err)
{
    struct tenrec_future *f = NULL;
    tenrec_status st = tenrec_bulk_async(w, entries, n, NULL, &f, err);

    if (st == TENREC_OK)
        st = tenrec_future_wait(f, CLUSTER_LONG_MS, err);
    tenrec_future_drop(f);
    return st;
}

struct tenrec_future *begin(struct tenrec_worker *w, const struct tenrec_bulk *entries, size_t n)
{
    struct tenrec_future *f = NULL;
    tenrec_error err;

    assert_status(tenrec_bulk_async(w, entries, n, NULL, &f, &err), &err);
    return f;
}

int64_t info_of(struct tenrec_worker *w, const char *key)
{
    const struct tenrec_value *found;
    struct tenrec_value *v = NULL;
    tenrec_error err;
    int64_t n;

    assert_status(tenrec_worker_inspect(w, NULL, TENREC_INSPECT_DEBUG_INFO, NULL, &v, &err), &err);
    found = tenrec_value_find(v, key);
    n = found ? found->u.integer : -1;
    tenrec_value_drop(v);
    return n;
}
