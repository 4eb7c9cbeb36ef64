/* SPDX-License-Identifier: Apache-2.0 */
/* rref_release.c - release of all references. */
#include "rpc/worker/worker.h"

#include "core/base/clock.h"
#include "rpc/future/thread_state.h"
#include "rpc/future/worker.h"
#include "rpc/rref/rref.h"
#include "rpc/rref/rref_context.h"

void rrefs_release(struct tenrec_worker *w, bool orphans)
{
    struct rref_acts acts = { 0 };

    rref_delete_users(rref_context_of(w), orphans, &acts);
    rref_acts_run(&acts);
}

int64_t rrefs_of_others(struct tenrec_worker *w)
{
    const struct rref_counts n = rref_context_count(rref_context_of(w));

    return (int64_t)(n.num_forks + n.num_pending_users + n.num_confirmed_users +
                     n.num_pending_children);
}

tenrec_status tenrec_rref_release_all(struct tenrec_worker *w, int64_t ms, tenrec_error *err)
{
    struct pool *pool = thread_state.pool;
    uint64_t until;
    tenrec_status st;

    if (thread_state.no_block > 0)
        return tenrec_fail(err, TENREC_EWOULDBLOCK,
                           "an inline function or a callback may not wait for references");
    st = worker_enter(w, err);
    if (st != TENREC_OK)
        return st;
    st = call_deadline(w, &ms, &until, err);
    if (st == TENREC_OK) {
        if (pool)
            pool_block_begin(pool);
        st = rref_wait_settled(rref_context_of(w), until, err);
        rrefs_release(w, false);
        if (st == TENREC_OK)
            st = rref_wait_released(rref_context_of(w), until, err);
        if (pool)
            pool_block_end(pool);
    }
    worker_leave(w);
    return st;
}
