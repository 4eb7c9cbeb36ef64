/* SPDX-License-Identifier: Apache-2.0 */
/* rref_release.c - release of all references, and leaks. */
#include "rpc/member/rref_release.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "group/meeting/process_group.h"
#include "rpc/future/enter.h"
#include "rpc/future/thread_state.h"
#include "rpc/future/worker.h"
#include "rpc/member/membership.h"
#include "rpc/member/termination.h"
#include "rpc/rref/rref_context.h"

enum { LEAKS_LOGGED = 10 }; /* one by one; further leaks are counted */

void rrefs_release(struct tenrec_worker *w, bool orphans)
{
    struct rref_acts acts = { 0 };

    rref_delete_users(w->rrefs, orphans, &acts);
    rref_acts_run(&acts);
}

tenrec_status rrefs_flush(struct tenrec_worker *w, uint64_t deadline_ns, tenrec_error *err)
{
    struct rref_counts n = rref_context_count(w->rrefs);
    int64_t mine = (int64_t)(n.num_forks + n.num_pending_users + n.num_confirmed_users +
                             n.num_pending_children);
    int64_t all = 0;
    tenrec_status st = process_group_sum(w->membership->pg, &mine, 1, deadline_ns, &all, err);

    if (st != TENREC_OK || all == 0)
        return st;
    /* No message is in flight in the group: a fork that has not arrived never will. */
    rrefs_release(w, true);
    return worker_quiesce(w, deadline_ns, err);
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
        st = rref_wait_settled(w->rrefs, until, err);
        rrefs_release(w, false);
        if (st == TENREC_OK)
            st = rref_wait_released(w->rrefs, until, err);
        if (pool)
            pool_block_end(pool);
    }
    worker_leave(w);
    return st;
}

/* ---- leaks --------------------------------------------------------------------- */

struct leaks {
    struct tenrec_worker *w;
    tenrec_error *err;
    size_t n;
};

static void rref_release_report(void *arg, const char *text)
{
    struct leaks *l = arg;

    if (l->n++ == 0)
        tenrec_fail(l->err, TENREC_EBUSY, "remote references leak: %s", text);
    if (l->n <= LEAKS_LOGGED)
        log_line(TENREC_LOG_WARN, l->w->self.name, "leaking remote reference: %s", text);
}

tenrec_status rrefs_check(struct tenrec_worker *w, bool graceful, tenrec_error *err)
{
    struct leaks l = { .w = w, .err = err };
    bool check;

    pthread_mutex_lock(&w->lock);
    check = w->rref_options.leak_check;
    pthread_mutex_unlock(&w->lock);
    if ((!graceful && !check) || !w->rrefs)
        return TENREC_OK;
    rref_leaks(w->rrefs, rref_release_report, &l);
    if (l.n > LEAKS_LOGGED)
        log_line(TENREC_LOG_WARN, w->self.name, "and %zu more", l.n - LEAKS_LOGGED);
    return l.n > 0 && check ? TENREC_EBUSY : TENREC_OK;
}

void tenrec_worker_set_rref_leak_check(struct tenrec_worker *w, bool on)
{
    pthread_mutex_lock(&w->lock);
    w->rref_options.leak_check = on;
    pthread_mutex_unlock(&w->lock);
}

void tenrec_worker_set_rrefs_released_callback(struct tenrec_worker *w,
                                               tenrec_rrefs_released_fn *fn, void *arg)
{
    pthread_mutex_lock(&w->lock);
    w->rref_options.released = fn;
    w->rref_options.arg = arg;
    pthread_mutex_unlock(&w->lock);
}
