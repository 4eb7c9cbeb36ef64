/* SPDX-License-Identifier: Apache-2.0 */
/* worker_info.c - lookups by the program of the workers in the group. */
#include "rpc/future/worker.h"

static tenrec_status worker_info_running(const struct tenrec_worker *w, tenrec_error *err)
{
    if (atomic_load(&w->state) != WORKER_RUNNING)
        return tenrec_fail(err, TENREC_ESHUTDOWN, "the worker is not running");
    return TENREC_OK;
}

tenrec_status tenrec_get_worker_info(const struct tenrec_worker *w, const char *name,
                                     struct tenrec_worker_info *ret, tenrec_error *err)
{
    tenrec_status st = worker_info_running(w, err);
    tenrec_peer id = w->self.id;

    *ret = (struct tenrec_worker_info){ 0 };
    if (st == TENREC_OK && name)
        st = peers_find(&w->peers, name, &id, err);
    return st == TENREC_OK ? tenrec_worker_get_info_by_id(w, id, ret, err) : st;
}

tenrec_status tenrec_worker_get_info_by_id(const struct tenrec_worker *w, tenrec_peer id,
                                           struct tenrec_worker_info *ret, tenrec_error *err)
{
    tenrec_status st = worker_info_running(w, err);

    *ret = (struct tenrec_worker_info){ 0 };
    if (st != TENREC_OK)
        return st;
    if (!peers_has(&w->peers, id)) {
        const size_t n = atomic_load(&w->peers.n);

        return tenrec_fail(err, TENREC_EPEER_UNKNOWN,
                           "no worker has id %d: the group has %zu worker%s", id, n,
                           n == 1 ? "" : "s");
    }
    *ret = (struct tenrec_worker_info){ .name = peers_name(&w->peers, id), .id = id };
    return TENREC_OK;
}

tenrec_status tenrec_worker_get_infos(const struct tenrec_worker *w, struct tenrec_worker_info *ret,
                                      size_t room, size_t *ret_n, tenrec_error *err)
{
    tenrec_status st = worker_info_running(w, err);
    size_t n = 0;

    *ret_n = 0;
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
