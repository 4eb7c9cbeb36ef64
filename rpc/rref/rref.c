/* SPDX-License-Identifier: Apache-2.0 */
/* rref.c - handles of references, for the program. */
#include <tenrec/rref.h>

#include <inttypes.h>

#include "core/base/clock.h"
#include "rpc/future/future.h"
#include "rpc/future/worker.h"
#include "rpc/rref/rref.h"
#include "rpc/rref/rref_context.h"
#include "rpc/value/value.h"

/* The source line of this thread's next reference. */
static _Thread_local struct {
    const char *file;
    int line;
} origin;

void tenrec_rref_set_origin(const char *file, int line)
{
    origin.file = file;
    origin.line = line;
}

void rref_origin_forget(void)
{
    origin.file = NULL;
    origin.line = 0;
}

void rref_origin_take(struct tenrec_rref *r)
{
    r->file = origin.file;
    r->line = origin.line;
    rref_origin_forget();
}

tenrec_status tenrec_rref_new(struct tenrec_worker *w, const struct tenrec_value *value,
                              struct tenrec_rref **ret, tenrec_error *err)
{
    const struct tenrec_value nil = tenrec_value_nil();
    struct streams *streams = NULL;
    struct tenrec_value *copy;
    struct tenrec_rref *r;
    tenrec_status st = worker_enter(w, err);

    *ret = NULL;
    if (st == TENREC_OK) {
        st = value_hand_over(value, &streams, err);
        if (st == TENREC_OK)
            st = tenrec_value_copy(value ? value : &nil, &copy, err);
        if (st == TENREC_OK)
            st = rref_local(rref_context_of(w), copy, &r, err);
        if (st != TENREC_OK) {
            streams_drop(streams);
        } else {
            rref_owner_of(r)->streams = streams; /* before the handle is shared */
            rref_origin_take(r);
            *ret = r;
        }
        worker_leave(w);
    }
    rref_origin_forget();
    return st;
}

void tenrec_rref_drop(struct tenrec_rref *r)
{
    struct rref_acts acts = { 0 };

    if (!r)
        return;
    rref_release(r, &acts);
    rref_acts_run(&acts);
}

bool tenrec_rref_is_owner(const struct tenrec_rref *r)
{
    return r->is_owner;
}

tenrec_peer tenrec_rref_owner(const struct tenrec_rref *r)
{
    return r->owner;
}

const char *tenrec_rref_owner_name(const struct tenrec_rref *r)
{
    return rref_context_name(r->ctx, r->owner);
}

bool tenrec_rref_confirmed_by_owner(const struct tenrec_rref *r)
{
    bool confirmed;

    pthread_mutex_lock(&r->ctx->lock);
    confirmed = r->is_owner || ((const struct rref_user *)(const void *)r)->state == USER_CONFIRMED;
    pthread_mutex_unlock(&r->ctx->lock);
    return confirmed;
}

tenrec_status tenrec_rref_future(struct tenrec_rref *r, struct tenrec_future **ret,
                                 tenrec_error *err)
{
    *ret = NULL;
    if (!r->creation)
        return tenrec_fail(err, TENREC_EINVAL,
                           "the reference was not made by tenrec_remote on this worker");
    *ret = tenrec_future_share(r->creation);
    return TENREC_OK;
}
