/* SPDX-License-Identifier: Apache-2.0 */
/* rref_remote.c - creation of values on other workers. */
#include <tenrec/message.h>
#include <tenrec/rref.h>

#include <stdlib.h>

#include "core/base/memory.h"
#include "rpc/future/worker.h"
#include "rpc/rref/rref.h"
#include "rpc/rref/rref_context.h"
#include "rpc/value/codec.h"

/* A creation in flight; holds the reference. */
struct creation {
    struct call_hook hook; /* first */
    struct tenrec_rref *ref;
};

static void creation_end(struct tenrec_rref *r, const tenrec_error *why)
{
    struct rref_acts acts = { 0 };

    rref_created(r, why, &acts);
    rref_acts_run(&acts);
}

static void rref_remote_created(struct call_hook *h, struct tenrec_worker *w,
                                const tenrec_error *why)
{
    struct creation *c = (struct creation *)(void *)h;

    (void)w;
    creation_end(c->ref, why);
    free(c);
}

static tenrec_status new_ref(struct tenrec_worker *w, tenrec_peer to, struct tenrec_rref **ret,
                             struct codec_creation *ids, tenrec_error *err)
{
    struct rref_user *u;
    tenrec_status st;

    if (to == w->self.id) {
        st = rref_local(rref_context_of(w), NULL, ret, err);
        if (st == TENREC_OK)
            *ids = (struct codec_creation){ (*ret)->id, (*ret)->id };
        return st;
    }
    st = rref_user_new(rref_context_of(w), to, &u, err);
    if (st == TENREC_OK) {
        *ids = (struct codec_creation){ u->ref.id, u->fork };
        *ret = &u->ref;
    }
    return st;
}

/* Sends the creation of `r`, which holds a share of its own. */
static tenrec_status rref_remote_send(struct tenrec_worker *w, struct tenrec_rref *r,
                                      struct call_spec *spec, const struct codec_creation *ids,
                                      const struct tenrec_value *args, size_t n, tenrec_error *err)
{
    struct creation *c = memory_new(1, sizeof *c);
    struct rref_fork named = { ids->id, ids->fork, w->self.id, w->self.id };
    struct tenrec_future *f;
    tenrec_error why, *reported = err ? err : &why;
    tenrec_status st;

    tenrec_rref_share(r);
    if (!c) {
        st = tenrec_fail(reported, TENREC_ENOMEM, "no memory for a remote reference");
    } else {
        *c = (struct creation){ .hook = { .done = rref_remote_created }, .ref = r };
        spec->hook = &c->hook;
        st = rref_linked_out(w, spec->to, &named, reported);
        if (st == TENREC_OK)
            st =
                call_write(w, TENREC_MSG_REMOTE_CALL, spec,
                           &(struct codec_creation){ named.id, named.fork }, args, n, &f, reported);
    }
    if (st == TENREC_OK) {
        r->creation = f;
    } else {
        creation_end(r, reported);
        free(c);
    }
    return st;
}

static tenrec_status rref_remote_check(const char *to, const char *function,
                                       const struct tenrec_value *args, size_t n,
                                       const struct tenrec_call_options *o, tenrec_error *err)
{
    if (!to || !function)
        return tenrec_fail(err, TENREC_EINVAL, "no %s is given", to ? "function" : "worker");
    if (!args && n > 0)
        return tenrec_fail(err, TENREC_EINVAL, "args is NULL: expected %zu arguments", n);
    if (o && o->into)
        return tenrec_fail(err, TENREC_EINVAL, "into is set: a remote creation has no result");
    return o ? call_check_options(o, 0, err) : TENREC_OK;
}

static tenrec_status rref_remote_begin(struct tenrec_worker *w, const char *to,
                                       const char *function, const struct tenrec_value *args,
                                       size_t n, bool deref, const struct tenrec_call_options *o,
                                       struct tenrec_rref **ret, tenrec_error *err)
{
    struct call_spec spec = { .function = function,
                              .op = "remote",
                              .deref = deref,
                              .traceparent = o ? o->traceparent : NULL };
    struct codec_creation ids;
    struct tenrec_rref *r;
    tenrec_status st;

    if (w->self.id < 0)
        return tenrec_fail(err, TENREC_EUNSUPPORTED, "only members of the group hold references");
    st = peers_find(&w->peers, to, &spec.to, err);
    if (st == TENREC_OK)
        st = call_begin_now(w, &spec, o ? o->timeout_ms : TENREC_TIMEOUT_DEFAULT, err);
    if (st == TENREC_OK)
        st = new_ref(w, spec.to, &r, &ids, err);
    if (st != TENREC_OK)
        return st;
    rref_origin_take(r);
    st = rref_remote_send(w, r, &spec, &ids, args, n, err);
    if (st == TENREC_OK)
        *ret = r;
    else
        tenrec_rref_drop(r);
    return st;
}

tenrec_status rref_remote(struct tenrec_worker *w, const char *to, const char *function,
                          const struct tenrec_value *args, size_t n, bool deref,
                          const struct tenrec_call_options *options, struct tenrec_rref **ret,
                          tenrec_error *err)
{
    tenrec_status st = rref_remote_check(to, function, args, n, options, err);

    if (st == TENREC_OK)
        st = worker_enter(w, err);
    if (st == TENREC_OK) {
        st = rref_remote_begin(w, to, function, args, n, deref, options, ret, err);
        worker_leave(w);
    }
    rref_origin_forget();
    return st;
}

tenrec_status tenrec_remote(struct tenrec_worker *w, const char *to, const char *function,
                            const struct tenrec_value *args, size_t n,
                            const struct tenrec_call_options *options, struct tenrec_rref **ret,
                            tenrec_error *err)
{
    *ret = NULL;
    return rref_remote(w, to, function, args, n, false, options, ret, err);
}
