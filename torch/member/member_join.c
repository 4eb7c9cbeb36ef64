/* SPDX-License-Identifier: Apache-2.0 */
/* member_join.c - a member joins torch's group and leaves it. */
#include "core/base/clock.h"
#include "core/base/fail.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/config/config.h"
#include "group/membership/membership.h"
#include "group/membership/torch_keys.h"
#include "torch/member/member.h"
#include "torch/member/references.h"
#include "torch/member/worker_list.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { UNLOCK_MS = 2000, POLL_US = 20000 };

/* ---- joining ------------------------------------------------------------------------------------
 */

static tenrec_status open_keys(struct tenrec_torch_member *m, uint64_t deadline_ns,
                               tenrec_error *err)
{
    struct rendezvous_options o = rendezvous_options_of(m->options);
    tenrec_status st;

    o.store_only = true;
    st = rendezvous_open(&o, deadline_ns, &m->rendezvous, err);
    if (st == TENREC_OK)
        st = torch_keys_open(m->rendezvous->store, m->rendezvous->store, "default", "", &m->keys,
                             err);
    return st;
}

/* Chooses the name, and an id. The token is held. */
static tenrec_status choose_identity(struct tenrec_torch_member *m, const struct worker_list *r,
                                     tenrec_error *err)
{
    const tenrec_peer wanted = m->rendezvous->launch.rank;
    tenrec_status st = worker_list_choose(r, wanted, "", &m->id, err);

    if (st == TENREC_OK)
        st = ranks_make_name(m->settings->name, m->id, m->name, err);
    if (st == TENREC_OK && strchr(m->name, '-'))
        st = tenrec_fail(err, TENREC_EINVAL,
                         "worker.name '%s': torch's workers read a name up to its first '-'",
                         m->name);
    return st == TENREC_OK ? worker_list_choose(r, m->id, m->name, &m->id, err) : st;
}

/* Waits for the answer to torch_calls_tell; drops `f`. */
static tenrec_status await_told(struct tenrec_future *f, tenrec_error *err)
{
    const tenrec_status st = tenrec_future_wait(f, TENREC_TIMEOUT_NONE, err);

    tenrec_future_drop(f);
    return st;
}

/* Tells the workers that this one joins. Those that do not listen any more stay unknown. */
static tenrec_status tell_all(struct tenrec_torch_member *m, const struct worker_list *r,
                              uint64_t deadline_ns, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (size_t i = 0; i < r->n && st == TENREC_OK; i++) {
        const struct worker_list_entry *e = &r->entry[i];
        struct tenrec_future *f;
        tenrec_error why;

        st = torch_peers_join(m, e->worker.name, e->worker.id, e->address ? e->address : "", err);
        if (st != TENREC_OK)
            break;
        st = torch_calls_tell(m, e->worker.id, true, deadline_ns, &f, &why);
        if (st == TENREC_OK)
            st = await_told(f, &why);
        if (st == TENREC_ECONNECT) {
            log_line(TENREC_LOG_WARN, m->name, "left out: no process listens for '%s': %s",
                     e->worker.name, why.text);
            torch_peers_leave(m, e->worker.name);
            st = TENREC_OK;
        } else if (st != TENREC_OK) {
            fail_with(err, &why);
            tenrec_error_prefix(err, "worker '%s' does not let this one join", e->worker.name);
        }
    }
    return st;
}

/* Tells the workers that this one leaves, all at once: a stopped worker delays no other. Their
 * failures are theirs. */
static void tell_leaving(struct tenrec_torch_member *m, uint64_t deadline_ns)
{
    struct tenrec_worker_info *other = NULL;
    struct tenrec_future **f;
    size_t n = 0;
    tenrec_error why;

    if (torch_peers_others(m, &other, &n, NULL) != TENREC_OK)
        return;
    f = memory_new(n ? n : 1, sizeof(struct tenrec_future *));
    for (size_t i = 0; f && i < n; i++)
        if (torch_calls_tell(m, other[i].id, false, deadline_ns, &f[i], NULL) != TENREC_OK)
            f[i] = NULL;
    for (size_t i = 0; f && i < n; i++)
        if (f[i] && await_told(f[i], &why) != TENREC_OK)
            log_line(TENREC_LOG_WARN, m->name, "cannot notify '%s' that this worker leaves: %s",
                     other[i].name, why.text);
    free(f);
    free(other);
}

/* Joins with the token held, by `holder`. */
static tenrec_status join_locked(struct tenrec_torch_member *m, const char *holder,
                                 const struct worker_list *r, uint64_t deadline_ns,
                                 tenrec_error *err)
{
    tenrec_status st = member_start_chain(m, err);

    if (st != TENREC_OK)
        return st;
    st = worker_list_add(m->keys, r, m->name, m->id, tenrec_chain_address(m->chain), deadline_ns,
                         err);
    if (st == TENREC_OK)
        st = worker_list_wake(m->keys, holder, deadline_ns, err);
    if (st == TENREC_OK)
        st = tell_all(m, r, deadline_ns, err);
    if (st != TENREC_OK) {
        tell_leaving(m, clock_deadline_ms(UNLOCK_MS));
        worker_list_remove(m->keys, m->name, m->id, clock_deadline_ms(UNLOCK_MS), NULL);
    }
    return st;
}

/* The name in the token: the final one is known only under it. */
static void provisional_name(const struct tenrec_torch_member *m, char ret[TENREC_NAME_MAX + 1])
{
    const int32_t rank = m->rendezvous->launch.rank;

    if (rank < 0 || ranks_make_name(m->settings->name, rank, ret, NULL) != TENREC_OK)
        snprintf(ret, TENREC_NAME_MAX + 1, "tenrec.%d", (int)getpid());
}

static tenrec_status member_join(struct tenrec_torch_member *m, uint64_t deadline_ns,
                                 tenrec_error *err)
{
    char holder[TENREC_NAME_MAX + 1];
    struct worker_list r = { .n = 0 };
    tenrec_status st = open_keys(m, deadline_ns, err);

    if (st == TENREC_OK)
        st = static_group_check(m, deadline_ns, err);
    if (st == TENREC_OK)
        st = worker_list_check_kind(m->keys, deadline_ns, err);
    if (st != TENREC_OK)
        return st;
    provisional_name(m, holder);
    st = worker_list_lock(m->keys, holder, true, deadline_ns, err);
    if (st != TENREC_OK)
        return st;
    st = worker_list_read(m->keys, deadline_ns, &r, err);
    if (st == TENREC_OK)
        st = choose_identity(m, &r, err);
    if (st == TENREC_OK)
        st = member_make_chain(m, err);
    if (st == TENREC_OK)
        st = join_locked(m, holder, &r, deadline_ns, err);
    worker_list_unlock(m->keys, holder, true, clock_deadline_ms(UNLOCK_MS));
    worker_list_finish(&r);
    return st;
}

tenrec_status tenrec_torch_member_join(struct tenrec_torch_member *m, tenrec_error *err)
{
    const uint64_t ms = m->settings->init_timeout_ms;
    bool fresh;
    tenrec_status st;

    pthread_mutex_lock(&m->lock);
    fresh = m->state == TORCH_NEW;
    m->state = fresh ? TORCH_JOINING : m->state;
    pthread_mutex_unlock(&m->lock);
    if (!fresh)
        return tenrec_fail(err, TENREC_EBUSY, "this member has joined already, once");
    st = member_join(m, ms == TENREC_FOREVER ? CLOCK_NEVER : clock_deadline_ms(ms), err);
    if (st == TENREC_OK) {
        static_group_watch(m); /* first: another thread may leave as soon as this one has joined */
        member_set_state(m, TORCH_JOINED);
    } else {
        member_stop(m);
    }
    return st;
}

/* ---- leaving ------------------------------------------------------------------------------------
 */

/* The store ends with this process: waits until no other worker is listed. */
static void await_others(struct tenrec_torch_member *m, uint64_t deadline_ns)
{
    struct backoff pause = { POLL_US, POLL_US };
    struct worker_list r;
    size_t n;

    while (m->rendezvous->server && worker_list_read(m->keys, deadline_ns, &r, NULL) == TENREC_OK) {
        n = r.n;
        worker_list_finish(&r);
        if (n == 0 || !backoff_take(&pause, deadline_ns))
            return;
    }
}

/* References get half of the time, for telling the others that this member leaves has to be left
 * over. */
static uint64_t references_until(uint64_t deadline_ns)
{
    const uint64_t now_ns = clock_now_ns();

    return deadline_ns == CLOCK_NEVER || deadline_ns <= now_ns
               ? deadline_ns
               : now_ns + (deadline_ns - now_ns) / 2;
}

static tenrec_status member_leave(struct tenrec_torch_member *m, uint64_t deadline_ns,
                                  tenrec_error *err)
{
    uint64_t store_ns;
    tenrec_status st;

    references_release(m, references_until(deadline_ns));
    if (!torch_calls_wait(m, deadline_ns))
        return tenrec_fail(err, TENREC_ETIMEDOUT, "calls of this worker are still under way");
    st = worker_list_lock(m->keys, m->name, false, deadline_ns, err);
    if (st != TENREC_OK)
        return st;
    tell_leaving(m, deadline_ns);
    /* Also when a worker has not answered until the deadline. */
    store_ns = clock_deadline_ms(UNLOCK_MS);
    st = worker_list_remove(m->keys, m->name, m->id, store_ns, err);
    worker_list_unlock(m->keys, m->name, false, store_ns);
    if (st == TENREC_OK)
        await_others(m, deadline_ns);
    return st;
}

tenrec_status tenrec_torch_member_leave(struct tenrec_torch_member *m, int64_t ms,
                                        tenrec_error *err)
{
    bool joined;
    tenrec_status st;

    if (ms <= 0)
        return tenrec_fail(err, TENREC_EINVAL, "leaving within %lld ms: expected more than 0",
                           (long long)ms);
    pthread_mutex_lock(&m->lock);
    joined = m->state == TORCH_JOINED;
    m->state = joined ? TORCH_LEAVING : m->state;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    if (!joined)
        return TENREC_OK;
    st = member_leave(m, ms == TENREC_TIMEOUT_NONE ? CLOCK_NEVER : clock_deadline_ms((uint64_t)ms),
                      err);
    if (st != TENREC_OK)
        tenrec_error_prefix(err, "leaving torch's group");
    member_stop(m);
    return st;
}
