/* SPDX-License-Identifier: Apache-2.0 */
/* group.c - views of the group for the program, and waits for them. */
#include "core/base/clock.h"
#include "core/base/fail.h"
#include "core/base/memory.h"
#include "rpc/call/call.h"
#include "rpc/future/thread_state.h"
#include "rpc/future/worker.h"
#include "rpc/monitor/monitor_inside.h"

#include <stdlib.h>

struct group_made {
    struct tenrec_group_view view; /* first */
    struct tenrec_worker_info member[];
};

/* Lock held. */
static tenrec_status group_check(const struct monitor *m, tenrec_error *err)
{
    if (m->expelled)
        return fail_with(err, &m->why);
    if (m->stopped)
        return tenrec_fail(err, TENREC_ESHUTDOWN, "the worker has been shut down");
    return TENREC_OK;
}

static tenrec_status made_new(size_t room, uint64_t version, struct group_made **ret,
                              tenrec_error *err)
{
    struct group_made *m = memory_new(1, sizeof *m + room * sizeof m->member[0]);

    if (!m)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a view of the group");
    m->view = (struct tenrec_group_view){ .size = sizeof m->view,
                                          .member = m->member,
                                          .version = version };
    *ret = m;
    return TENREC_OK;
}

static void made_add(struct group_made *m, const struct peers *p, tenrec_peer id)
{
    m->member[m->view.n++] = (struct tenrec_worker_info){ .name = peers_name(p, id), .id = id };
}

static tenrec_status list_static(const struct peers *p, struct group_made **ret, tenrec_error *err)
{
    const tenrec_peer room = (tenrec_peer)atomic_load(&p->top);
    tenrec_status st = made_new((size_t)room, 1, ret, err);

    for (tenrec_peer i = 0; i < room && st == TENREC_OK; i++)
        if (peers_has(p, i))
            made_add(*ret, p, i);
    return st;
}

static tenrec_status list_dynamic(struct tenrec_worker *w, struct group_made **ret,
                                  tenrec_error *err)
{
    struct monitor *m = group_of(w)->monitor;
    tenrec_status st;

    pthread_mutex_lock(&m->lock);
    st = group_check(m, err);
    if (st == TENREC_OK)
        st = made_new(m->view.n, (uint64_t)m->view.version, ret, err);
    for (size_t i = 0; i < m->view.n && st == TENREC_OK; i++)
        made_add(*ret, &w->peers, m->view.entry[i].id);
    pthread_mutex_unlock(&m->lock);
    return st;
}

tenrec_status tenrec_group_view_get(struct tenrec_worker *w, struct tenrec_group_view **ret,
                                    tenrec_error *err)
{
    tenrec_status st = worker_enter(w, err);
    struct group_made *m = NULL;

    *ret = NULL;
    if (st != TENREC_OK)
        return st;
    st = group_of(w)->monitor ? list_dynamic(w, &m, err) : list_static(&w->peers, &m, err);
    worker_leave(w);
    if (st == TENREC_OK)
        *ret = &m->view;
    return st;
}

void tenrec_group_view_drop(struct tenrec_group_view *v)
{
    free(v);
}

/* Lower bounds. */
struct group_wanted {
    uint64_t version;
    size_t n;
};

static tenrec_status check_static(struct tenrec_worker *w, const struct group_wanted *wanted,
                                  tenrec_error *err)
{
    const size_t n = atomic_load(&w->peers.n);

    if (wanted->version <= 1 && wanted->n <= n)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EINVAL,
                       "the group is static: its %zu workers and view 1 never change", n);
}

static tenrec_status wait_dynamic(struct tenrec_worker *w, const struct group_wanted *wanted,
                                  uint64_t until_ns, tenrec_error *err)
{
    struct monitor *m = group_of(w)->monitor;
    tenrec_status st;
    bool timely = true;

    pthread_mutex_lock(&m->lock);
    while ((st = group_check(m, err)) == TENREC_OK) {
        if ((uint64_t)m->view.version >= wanted->version && m->view.n >= wanted->n)
            break;
        if (!timely) {
            st = tenrec_fail(err, TENREC_ETIMEDOUT,
                             "the group has %zu members and view %lld, expected %zu and %llu",
                             m->view.n, (long long)m->view.version, wanted->n,
                             (unsigned long long)wanted->version);
            break;
        }
        timely = clock_cond_wait(&m->changed, &m->lock, until_ns);
    }
    pthread_mutex_unlock(&m->lock);
    return st;
}

static tenrec_status wait_for(struct tenrec_worker *w, const struct group_wanted *wanted,
                              int64_t ms, tenrec_error *err)
{
    struct pool *pool = thread_state.pool;
    uint64_t until_ns;
    tenrec_status st;

    if (thread_state.no_block > 0)
        return tenrec_fail(err, TENREC_EWOULDBLOCK,
                           "an inline function or a callback may not wait for the group");
    st = worker_enter(w, err);
    if (st != TENREC_OK)
        return st;
    st = call_deadline(w, &ms, &until_ns, err);
    if (st == TENREC_OK && !group_of(w)->monitor) {
        st = check_static(w, wanted, err);
    } else if (st == TENREC_OK) {
        if (pool)
            pool_block_begin(pool);
        st = wait_dynamic(w, wanted, until_ns, err);
        if (pool)
            pool_block_end(pool);
    }
    worker_leave(w);
    return st;
}

tenrec_status tenrec_group_wait_version(struct tenrec_worker *w, uint64_t version, int64_t ms,
                                        tenrec_error *err)
{
    return wait_for(w, &(struct group_wanted){ .version = version }, ms, err);
}

tenrec_status tenrec_group_wait_members(struct tenrec_worker *w, size_t n, int64_t ms,
                                        tenrec_error *err)
{
    return wait_for(w, &(struct group_wanted){ .n = n }, ms, err);
}

tenrec_status tenrec_worker_set_member_callbacks(struct tenrec_worker *w,
                                                 const struct tenrec_member_callbacks *c,
                                                 tenrec_error *err)
{
    if (c && c->size < sizeof *c)
        return tenrec_fail(err, TENREC_EINVAL,
                           "member callbacks: size is %u, expected %zu (set it to sizeof)", c->size,
                           sizeof *c);
    pthread_mutex_lock(&w->lock);
    group_of(w)->callbacks = c ? *c : (struct tenrec_member_callbacks){ .size = 0 };
    pthread_mutex_unlock(&w->lock);
    return TENREC_OK;
}
