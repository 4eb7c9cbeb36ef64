/* SPDX-License-Identifier: Apache-2.0 */
/* rref_service.c - references as a service of a worker. */
#include "rpc/rref/rref.h"

#include "core/base/log.h"
#include "rpc/call/calls.h"
#include "rpc/rref/rref_context.h"

enum { LEAKS_LOGGED = 10 }; /* one by one; further leaks are counted */

static tenrec_status rref_service_init(struct tenrec_worker *w, const struct service_config *c,
                                       tenrec_error *err)
{
    (void)c, (void)err;
    w->calls->transfers = &rref_transfers;
    w->calls->served_refs = &rref_calls;
    object_types_init(&rrefs_of(w)->types);
    return TENREC_OK;
}

static void rref_service_finish(struct tenrec_worker *w)
{
    object_types_finish(&rrefs_of(w)->types);
}

static tenrec_status rref_service_start(struct tenrec_worker *w, const struct service_session *s,
                                        tenrec_error *err)
{
    return rrefs_open(w, s->member, s->n, s->incarnation, err);
}

static void rref_service_close(struct tenrec_worker *w, const tenrec_error *why)
{
    (void)why;
    rrefs_stop(w);
}

static void rref_service_debug_info(struct tenrec_worker *w, const struct service_outlet *to)
{
    const struct rref_counts c = rref_context_count(rref_context_of(w));

    service_put(to, "rref.num_owner_rrefs", c.num_owner_rrefs);
    service_put(to, "rref.num_forks", c.num_forks);
    service_put(to, "rref.num_pending_users", c.num_pending_users);
    service_put(to, "rref.num_confirmed_users", c.num_confirmed_users);
    service_put(to, "rref.num_pending_children", c.num_pending_children);
    service_put(to, "rref.num_pending_owners", c.num_pending_owners);
    service_put(to, "rref.num_pending_futures", c.num_pending_futures);
    service_put(to, "rref.num_tombstones", c.num_tombstones);
}

const struct service rref_service = {
    .name = "rref",
    .size = sizeof(struct rrefs),
    .init = rref_service_init,
    .finish = rref_service_finish,
    .start = rref_service_start,
    .close = rref_service_close,
    .release = rrefs_drop,
    .debug_info = rref_service_debug_info,
    .messages =
        (const struct dispatch_handler[]){ { TENREC_MSG_RREF_FETCH_CALL, rref_fetch_arrived },
                                           { TENREC_MSG_RREF_USER_DELETE, rrefs_control_arrived },
                                           { TENREC_MSG_RREF_FORK_REQUEST, rrefs_control_arrived },
                                           { TENREC_MSG_RREF_CHILD_ACCEPT, rrefs_control_arrived },
                                           { 0 } },
};

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
    check = rrefs_of(w)->leak_check;
    pthread_mutex_unlock(&w->lock);
    if ((!graceful && !check) || !rref_context_of(w))
        return TENREC_OK;
    rref_leaks(rref_context_of(w), rref_release_report, &l);
    if (l.n > LEAKS_LOGGED)
        log_line(TENREC_LOG_WARN, w->self.name, "and %zu more", l.n - LEAKS_LOGGED);
    return l.n > 0 && check ? TENREC_EBUSY : TENREC_OK;
}

void tenrec_worker_set_rref_leak_check(struct tenrec_worker *w, bool on)
{
    pthread_mutex_lock(&w->lock);
    rrefs_of(w)->leak_check = on;
    pthread_mutex_unlock(&w->lock);
}

void tenrec_worker_set_rrefs_released_callback(struct tenrec_worker *w,
                                               tenrec_rrefs_released_fn *fn, void *arg)
{
    pthread_mutex_lock(&w->lock);
    rrefs_of(w)->released = fn;
    rrefs_of(w)->released_arg = arg;
    pthread_mutex_unlock(&w->lock);
}

tenrec_status tenrec_worker_register_object_type(struct tenrec_worker *w,
                                                 const struct tenrec_object_type *type,
                                                 tenrec_error *err)
{
    return object_types_add(&rrefs_of(w)->types, type, err);
}
