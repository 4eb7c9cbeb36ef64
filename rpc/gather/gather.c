/* SPDX-License-Identifier: Apache-2.0 */
/* gather.c - both sides. Each worker counts the gathers of a set, so the n-th gather of a worker
 * meets the n-th of the others, whichever thread calls. A failed gather stays failed: a late worker
 * gets the error at once and continues with the next number, so the set stays in step. */
#include "rpc/gather/gather.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "rpc/call/call.h"
#include "rpc/call/calls.h"
#include "rpc/future/future.h"
#include "rpc/future/thread_state.h"
#include "rpc/future/worker.h"
#include "rpc/gather/gather_set.h"
#include "rpc/value/value.h"

#include <stdlib.h>

enum { LATE_MS = 1000 /* another thread is completing a gather */ };

/* A barrier has no values: nil. */
static struct tenrec_value gather_own_list(const struct tenrec_value *value)
{
    return value ? tenrec_value_array((struct tenrec_value *)(uintptr_t)value, 1)
                 : tenrec_value_nil();
}

static tenrec_status gather_lead(struct tenrec_worker *w, struct participants *s, int64_t number,
                                 uint64_t deadline_ns, const struct tenrec_value *value,
                                 struct tenrec_future **ret, tenrec_error *err)
{
    const struct tenrec_value list = gather_own_list(value);
    struct gather_part part = { .id = w->self.id };
    struct tenrec_future *f = NULL;
    tenrec_status st = tenrec_future_new(&f, err);

    if (st == TENREC_OK)
        st = tenrec_value_copy(&list, &part.value, err);
    if (st != TENREC_OK) {
        gather_refuse(w, s, number, part.id, err);
        tenrec_future_drop(f);
        return st;
    }
    part.future = tenrec_future_share(f);
    st = gather_join(w, s, number, deadline_ns, &part, err);
    if (st == TENREC_OK) {
        *ret = f;
        return TENREC_OK;
    }
    tenrec_value_drop(part.value);
    tenrec_future_drop(f);
    tenrec_future_drop(f);
    return st;
}

/* Without children we only ask our parent, and wait for its answer. */
static tenrec_status gather_follow(struct tenrec_worker *w, const struct participants *s,
                                   tenrec_peer parent, int64_t number, int64_t ms,
                                   uint64_t deadline_ns, const struct tenrec_value *value,
                                   struct tenrec_future **ret, tenrec_error *err)
{
    const struct tenrec_value list = gather_own_list(value);
    const struct gather_rise r = { .who = s,
                                   .number = number,
                                   .ms = ms,
                                   .deadline_ns = deadline_ns,
                                   .parent = parent,
                                   .value = &list };

    return gather_rise_send(w, &r, ret, err);
}

static tenrec_status gather_begin(struct tenrec_worker *w, struct participants *s, int64_t number,
                                  int64_t ms, uint64_t deadline_ns,
                                  const struct tenrec_value *value, struct tenrec_future **ret,
                                  tenrec_error *err)
{
    const struct gather_tree t = { s->n, gathers_of(w)->degree };
    size_t first;

    if (s->me == 0 || gather_tree_children(&t, s->me, &first) > 0)
        return gather_lead(w, s, number, deadline_ns, value, ret, err);
    return gather_follow(w, s, s->id[gather_tree_parent(&t, s->me)], number, ms, deadline_ns, value,
                         ret, err);
}

/* A follower's future is that of a call, which has a deadline of its own. */
static tenrec_status gather_wait(struct tenrec_worker *w, struct tenrec_future *f,
                                 uint64_t deadline_ns, tenrec_error *err)
{
    const int left_ms = clock_left_ms(deadline_ns);
    tenrec_status st;

    if (f->call.worker)
        return tenrec_future_wait(f, TENREC_TIMEOUT_DEFAULT, err);
    if (left_ms != 0) {
        st = tenrec_future_wait(f, left_ms < 0 ? TENREC_TIMEOUT_NONE : left_ms, err);
        if (st != TENREC_ETIMEDOUT)
            return st;
    }
    if (!tenrec_future_done(f))
        gather_expire(w); /* the loop is late; names the missing */
    return tenrec_future_wait(f, LATE_MS, err);
}

/* `what` begins the text of an error. */
static tenrec_status gather_run(struct tenrec_worker *w, const char *what,
                                const struct tenrec_value *value, const char *const *names,
                                size_t n, int64_t ms, struct tenrec_value **ret, tenrec_error *err)
{
    const struct tenrec_value nil = tenrec_value_nil();
    const struct tenrec_value *mine = value || !ret ? value : &nil;
    struct tenrec_future *f = NULL;
    struct gather_set *set;
    struct participants *s = NULL;
    uint64_t deadline_ns;
    int64_t number = -1;
    tenrec_status st;

    if (thread_state.no_block > 0)
        return tenrec_fail(err, TENREC_EWOULDBLOCK,
                           "an inline function or a callback may not wait for a %s", what);
    if (value && value_has_handles(value))
        return tenrec_fail(err, TENREC_EUNSUPPORTED, "references are not gathered");
    if (value_on_devices(value))
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "tensors on devices are not gathered: pass copies on the host "
                           "(tenrec_tensor_to)");
    st = worker_enter(w, err);
    if (st != TENREC_OK)
        return st;
    st = call_deadline(w, &ms, &deadline_ns, err);
    if (st == TENREC_OK)
        st = gather_find_set(w, names, n, &s, err);
    if (st == TENREC_OK) {
        pthread_mutex_lock(&gathers_of(w)->lock);
        if ((set = gather_set_get(&gathers_of(w)->sets, s)))
            number = set->next++;
        pthread_mutex_unlock(&gathers_of(w)->lock);
        if (number < 0)
            st = tenrec_fail(err, TENREC_ENOMEM, "no memory for a gather");
        else
            st = gather_begin(w, s, number, ms, deadline_ns, mine, &f, err);
    }
    participants_drop(s);
    worker_leave(w);
    if (st == TENREC_OK)
        st = gather_wait(w, f, deadline_ns, err);
    if (st == TENREC_OK && ret)
        st = future_take_value(f, ret, err);
    tenrec_future_drop(f);
    if (st != TENREC_OK)
        tenrec_error_prefix(err, "%s", what);
    return st;
}

tenrec_status tenrec_worker_all_gather(struct tenrec_worker *w, const struct tenrec_value *value,
                                       const char *const *names, size_t n, int64_t ms,
                                       struct tenrec_value **ret, tenrec_error *err)
{
    if (ret)
        *ret = NULL;
    return gather_run(w, "gather", value, names, n, ms, ret, err);
}

tenrec_status tenrec_worker_barrier(struct tenrec_worker *w, const char *const *names, size_t n,
                                    int64_t ms, tenrec_error *err)
{
    return gather_run(w, "barrier", NULL, names, n, ms, NULL, err);
}
