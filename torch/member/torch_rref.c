/* SPDX-License-Identifier: Apache-2.0 */
/* torch_rref.c - references of the program: made, and their values fetched. */
#include "core/base/clock.h"
#include "core/base/memory.h"
#include "torch/member/member.h"
#include "torch/member/references.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- made ----------------------------------------------------------------------------- */

/* The type of the result, as TorchScript writes it; empty if the function does not tell. */
static struct bytes_slice result_type(const char *function)
{
    const char *arrow = strstr(function, TORCH_CALL_TYPE), *type, *end;

    if (!strstr(function, "::") && strncmp(function, "__torch__.", strlen("__torch__.")) != 0)
        return bytes_of_text(REFERENCE_OF_PYTHON);
    if (!arrow)
        return bytes_of_text("");
    type = arrow + strlen(TORCH_CALL_TYPE);
    if (!strstr(function, "::"))
        return bytes_of_text(strlen(type) <= REFERENCE_TYPE_MAX ? type : "");
    /* "Tensor" or "Tensor(a!)"; TorchScript has other names for lists and tuples. */
    for (end = type; isalpha((unsigned char)*end); end++)
        ;
    return *end && *end != '('
               ? bytes_of_text("")
               : (struct bytes_slice){ (const uint8_t *)type, (size_t)(end - type) };
}

/* The creation has ended, or failed. */
static void remote_created(struct tenrec_future *f, void *arg)
{
    struct rref_acts acts = { 0 };

    rref_created(arg, tenrec_future_error(f), &acts);
    rref_acts_run(&acts);
}

/* Frees a reference that its owner will never hear of. */
static void remote_abandon(struct rref_user *u, const tenrec_error *why)
{
    struct rref_acts acts = { 0 };

    pthread_mutex_lock(&u->ref.ctx->lock);
    u->deleted = true;
    pthread_mutex_unlock(&u->ref.ctx->lock);
    rref_created(&u->ref, why, &acts);
    rref_acts_run(&acts);
}

tenrec_status tenrec_torch_remote(struct tenrec_torch_member *m, const char *to,
                                  const char *function, const struct tenrec_value *args, size_t n,
                                  int64_t ms, struct tenrec_rref **ret, tenrec_error *err)
{
    struct outgoing refs = { .to = -1 };
    struct tenrec_future *f;
    struct tenrec_msg *msg;
    struct rref_user *u;
    tenrec_error why;
    tenrec_status st = torch_call_check(m, to, function, args, n, &ms, err);

    *ret = NULL;
    if (st == TENREC_OK)
        st = torch_peers_id(m, to, &refs.to, err);
    if (st == TENREC_OK && refs.to == m->id)
        st = tenrec_fail(err, TENREC_EINVAL,
                         "'%s' is this worker: tenrec_torch_rref_new refers to a value of its own",
                         to);
    refs.ctx = m->refs;
    if (st == TENREC_OK)
        st = rref_user_new(m->refs, refs.to, &u, err);
    if (st != TENREC_OK)
        return st;
    reference_name(&u->ref, result_type(function), function);
    st = torch_call_write(function, args, n, (const struct rref_id[]){ u->ref.id, u->fork }, &refs,
                          &msg, &why);
    if (st == TENREC_OK)
        st = torch_calls_send(m, refs.to, function, msg, &refs, ms, &f, &why);
    if (st != TENREC_OK) {
        remote_abandon(u, &why);
        return tenrec_fail(err, st, "%s", why.text);
    }
    *ret = tenrec_rref_share(&u->ref); /* the other is of the creation */
    if (tenrec_future_add_callback(f, remote_created, &u->ref, &why) != TENREC_OK) {
        struct rref_acts acts = { 0 };
        rref_created(&u->ref, &why, &acts);
        rref_acts_run(&acts);
    }
    tenrec_future_drop(f);
    return TENREC_OK;
}

static tenrec_status check_member(struct tenrec_torch_member *m, tenrec_error *err)
{
    int64_t ms = TENREC_TIMEOUT_DEFAULT;

    return torch_call_check(m, "", "", NULL, 0, &ms, err);
}

tenrec_status tenrec_torch_rref_new(struct tenrec_torch_member *m, const struct tenrec_value *value,
                                    struct tenrec_rref **ret, tenrec_error *err)
{
    struct tenrec_value *copy;
    tenrec_status st = check_member(m, err);

    *ret = NULL;
    if (st == TENREC_OK)
        st = tenrec_value_copy(value, &copy, err);
    if (st == TENREC_OK)
        st = rref_local(m->refs, copy, ret, err);
    if (st == TENREC_OK)
        reference_name(*ret, bytes_of_text(REFERENCE_OF_PYTHON), "");
    return st;
}

/* ---- fetched --------------------------------------------------------------------------- */

/* Waits for a value of this member. */
struct local_wait {
    struct rref_waiter waiter;    /* first; holds the reference */
    struct tenrec_future *future; /* shares */
};

static void local_ready(struct rref_waiter *w, const tenrec_error *why)
{
    struct local_wait *l = (struct local_wait *)(void *)w;
    tenrec_error err;

    if (!why && tenrec_future_set_value(l->future, rref_owner_of(w->ref)->value, &err) != TENREC_OK)
        why = &err;
    if (why)
        tenrec_future_set_error(l->future, why, NULL);
    tenrec_future_drop(l->future);
    tenrec_rref_drop(w->ref);
    free(l);
}

static tenrec_status fetch_local(struct tenrec_torch_member *m, struct tenrec_rref *r, int64_t ms,
                                 struct tenrec_future **ret, tenrec_error *err)
{
    const uint64_t deadline_ns =
        ms == TENREC_TIMEOUT_NONE ? CLOCK_NEVER : clock_deadline_ms((uint64_t)ms);
    struct local_wait *l = memory_new(1, sizeof *l);
    tenrec_status st = l ? tenrec_future_new(&l->future, err)
                         : tenrec_fail(err, TENREC_ENOMEM, "no memory to wait for a value");

    if (st != TENREC_OK) {
        free(l);
        return st;
    }
    *ret = tenrec_future_share(l->future);
    l->waiter =
        (struct rref_waiter){ .deadline_ns = deadline_ns, .from = -1, .ready = local_ready };
    if (rref_wait(tenrec_rref_share(r), &l->waiter))
        local_ready(&l->waiter, l->waiter.why);
    else if (deadline_ns != CLOCK_NEVER)
        tenrec_chain_wake_at(m->chain, deadline_ns);
    return TENREC_OK;
}

/* (id, this worker): torch's owners give any value to a fetch of Python's. */
static tenrec_status fetch_remote(struct tenrec_torch_member *m, struct tenrec_rref *r, int64_t ms,
                                  struct tenrec_future **ret, tenrec_error *err)
{
    struct pickler p = { .jit = true };
    struct tenrec_msg *msg;
    tenrec_status st;

    pickler_begin(&p);
    pickler_rref_id(&p, r->id);
    pickler_int(&p, m->id);
    bytes_add_u8(&p.out, 0x86); /* a tuple of two */
    pickler_end(&p);
    st = pickler_message(&p, TENREC_MSG_RREF_FETCH_CALL, &msg, err);
    return st == TENREC_OK ? torch_calls_send(m, r->owner, "to_here", msg, NULL, ms, ret, err) : st;
}

tenrec_status tenrec_torch_rref_to_here_async(struct tenrec_torch_member *m, struct tenrec_rref *r,
                                              int64_t ms, struct tenrec_future **ret,
                                              tenrec_error *err)
{
    tenrec_status st = torch_call_check(m, "", "to_here", NULL, 0, &ms, err);

    if (ret)
        *ret = NULL;
    if (st == TENREC_OK && r->ctx != m->refs)
        st = tenrec_fail(err, TENREC_EINVAL, "the remote reference is of another group");
    if (st == TENREC_OK)
        st = rref_usable(r, err);
    if (st != TENREC_OK)
        return st;
    return r->is_owner ? fetch_local(m, r, ms, ret, err) : fetch_remote(m, r, ms, ret, err);
}

tenrec_status tenrec_torch_rref_to_here(struct tenrec_torch_member *m, struct tenrec_rref *r,
                                        int64_t ms, struct tenrec_value **ret, tenrec_error *err)
{
    struct tenrec_future *f;
    tenrec_status st = tenrec_torch_rref_to_here_async(m, r, ms, &f, err);

    if (ret)
        *ret = NULL;
    return st == TENREC_OK ? torch_call_wait(f, ret, err) : st;
}
