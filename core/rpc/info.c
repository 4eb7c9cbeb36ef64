/* SPDX-License-Identifier: Apache-2.0 */
/* info.c - what a worker tells of itself and its group. */
#include "backend/registry.h"
#include "rpc/setup.h"
#include "rpc/worker.h"

#include <tenrec/version.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

const char *tenrec_version(void)
{
    return TEXT(TENREC_VERSION_MAJOR) "." TEXT(TENREC_VERSION_MINOR) "." TEXT(TENREC_VERSION_PATCH);
}

uint32_t tenrec_version_number(void)
{
    return TENREC_VERSION;
}

bool tenrec_is_available(const char *backend)
{
    struct setup *setup = NULL;
    struct backend *b = NULL;

    if (backend) {
        if (backend_get(backend, &b, NULL) != TENREC_OK)
            return false;
        backend_put(b);
        return true;
    }
    if (setup_make(NULL, &setup, NULL) != TENREC_OK)
        return false;
    setup_drop(setup);
    return true;
}

static tenrec_status known(const struct tenrec_worker *w, tenrec_error *err)
{
    if (atomic_load(&w->state) != WORKER_RUNNING)
        return tenrec_fail(err, TENREC_ESHUTDOWN, "the worker is not running: it knows no group");
    return TENREC_OK;
}

tenrec_status tenrec_get_worker_info(const struct tenrec_worker *w, const char *name,
                                     struct tenrec_worker_info *ret, tenrec_error *err)
{
    tenrec_status st = known(w, err);
    tenrec_peer id = w->self.id;

    if (st == TENREC_OK && name)
        st = peers_find(&w->peers, name, &id, err);
    return st == TENREC_OK ? tenrec_get_worker_info_by_id(w, id, ret, err) : st;
}

tenrec_status tenrec_get_worker_info_by_id(const struct tenrec_worker *w, tenrec_peer id,
                                           struct tenrec_worker_info *ret, tenrec_error *err)
{
    tenrec_status st = known(w, err);

    if (st != TENREC_OK)
        return st;
    if (!peers_has(&w->peers, id))
        return tenrec_fail(err, TENREC_EPEER_UNKNOWN, "no worker has id %d, there are %zu", id,
                           atomic_load(&w->peers.n));
    *ret = (struct tenrec_worker_info){ .name = peers_name(&w->peers, id), .id = id };
    return TENREC_OK;
}

tenrec_status tenrec_get_worker_infos(const struct tenrec_worker *w, struct tenrec_worker_info *ret,
                                      size_t room, size_t *ret_n, tenrec_error *err)
{
    tenrec_status st = known(w, err);
    size_t n = 0;

    if (st != TENREC_OK)
        return st;
    for (size_t i = 0; i < atomic_load(&w->peers.top); i++) {
        if (!peers_has(&w->peers, (tenrec_peer)i))
            continue;
        if (n < room)
            ret[n] = (struct tenrec_worker_info){ .name = peers_name(&w->peers, (tenrec_peer)i),
                                                  .id = (tenrec_peer)i };
        n++;
    }
    *ret_n = n;
    return TENREC_OK;
}

int64_t tenrec_get_rpc_timeout(const struct tenrec_worker *w)
{
    return atomic_load(&w->timeout_ms);
}

tenrec_status tenrec_set_rpc_timeout(struct tenrec_worker *w, int64_t ms, tenrec_error *err)
{
    if (ms <= 0)
        return tenrec_fail(err, TENREC_EINVAL,
                           "a default timeout of %lld ms: it must be positive, or "
                           "TENREC_TIMEOUT_NONE",
                           (long long)ms);
    atomic_store(&w->timeout_ms, ms);
    return TENREC_OK;
}

tenrec_status tenrec_set_allocator(struct tenrec_worker *w, const struct tenrec_allocator *a,
                                   tenrec_error *err)
{
    if (a && (a->size < sizeof *a || !a->alloc))
        return tenrec_fail(err, TENREC_EINVAL, "allocator: size or alloc is not set");
    pthread_mutex_lock(&w->lock);
    w->allocator = a ? *a : (struct tenrec_allocator){ .size = 0 };
    pthread_mutex_unlock(&w->lock);
    return TENREC_OK;
}
