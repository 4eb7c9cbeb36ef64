/* SPDX-License-Identifier: Apache-2.0 */
/* info.c - the default timeout and the allocator of a worker. */
#include "rpc/call/calls.h"

int64_t tenrec_worker_get_rpc_timeout(const struct tenrec_worker *w)
{
    return atomic_load(&w->calls->timeout_ms);
}

tenrec_status tenrec_worker_set_rpc_timeout(struct tenrec_worker *w, int64_t ms, tenrec_error *err)
{
    if (ms <= 0)
        return tenrec_fail(err, TENREC_EINVAL,
                           "a default timeout of %lld ms: it must be positive, or "
                           "TENREC_TIMEOUT_NONE",
                           (long long)ms);
    atomic_store(&w->calls->timeout_ms, ms);
    return TENREC_OK;
}

tenrec_status tenrec_worker_set_allocator(struct tenrec_worker *w, const struct tenrec_allocator *a,
                                          tenrec_error *err)
{
    if (a && (a->size < sizeof *a || !a->alloc))
        return tenrec_fail(err, TENREC_EINVAL, "allocator: size or alloc is not set");
    pthread_mutex_lock(&w->lock);
    w->calls->allocator = a ? *a : (struct tenrec_allocator){ .size = 0 };
    pthread_mutex_unlock(&w->lock);
    return TENREC_OK;
}
