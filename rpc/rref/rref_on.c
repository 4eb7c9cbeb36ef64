/* SPDX-License-Identifier: Apache-2.0 */
/* rref_on.c - calls on a referenced value: the owner resolves the first argument to the value. */
#include <tenrec/rref.h>

#include <stdlib.h>

#include "core/base/memory.h"
#include "rpc/call/call.h"
#include "rpc/future/worker.h"
#include "rpc/rref/rref.h"
#include "rpc/rref/rref_context.h"

enum { FEW = 8 };

/* The worker of `r`, entered, and the arguments after `r`. */
struct on {
    struct tenrec_worker *w;
    struct tenrec_value few[FEW];
    struct tenrec_value *args; /* few, or owns */
};

static void on_finish(struct on *on)
{
    worker_leave(on->w);
    if (on->args != on->few)
        free(on->args);
}

static tenrec_status on_begin(struct on *on, struct tenrec_rref *r, const struct tenrec_value *args,
                              size_t n, tenrec_error *err)
{
    tenrec_status st;

    if (!args && n > 0)
        return tenrec_fail(err, TENREC_EINVAL, "args is NULL: expected %zu arguments", n);
    st = rref_usable(r, err);
    if (st == TENREC_OK)
        st = rref_context_enter(r->ctx, &on->w, err);
    if (st != TENREC_OK)
        return st;
    on->args = n < FEW ? on->few : memory_new(n + 1, sizeof *on->args);
    if (!on->args) {
        worker_leave(on->w);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu arguments", n + 1);
    }
    on->args[0] = tenrec_value_rref(r);
    if (n > 0)
        memcpy(on->args + 1, args, n * sizeof *args);
    return TENREC_OK;
}

tenrec_status tenrec_rref_rpc_sync(struct tenrec_rref *r, const char *function,
                                   const struct tenrec_value *args, size_t n,
                                   const struct tenrec_call_options *options,
                                   struct tenrec_value **ret, tenrec_error *err)
{
    struct on on;
    tenrec_status st = on_begin(&on, r, args, n, err);

    if (ret)
        *ret = NULL;
    if (st != TENREC_OK)
        return st;
    st = call_sync(on.w, tenrec_rref_owner_name(r), function, on.args, n + 1, true, options, ret,
                   err);
    on_finish(&on);
    return st;
}

tenrec_status tenrec_rref_rpc_async(struct tenrec_rref *r, const char *function,
                                    const struct tenrec_value *args, size_t n,
                                    const struct tenrec_call_options *options,
                                    struct tenrec_future **ret, tenrec_error *err)
{
    struct on on;
    tenrec_status st = on_begin(&on, r, args, n, err);

    if (ret)
        *ret = NULL;
    if (st != TENREC_OK)
        return st;
    st = call_async(on.w, tenrec_rref_owner_name(r), function, on.args, n + 1, true, options, ret,
                    err);
    on_finish(&on);
    return st;
}

tenrec_status tenrec_rref_remote(struct tenrec_rref *r, const char *function,
                                 const struct tenrec_value *args, size_t n,
                                 const struct tenrec_call_options *options,
                                 struct tenrec_rref **ret, tenrec_error *err)
{
    struct on on;
    tenrec_status st = on_begin(&on, r, args, n, err);

    if (ret)
        *ret = NULL;
    if (st != TENREC_OK) {
        rref_origin_forget();
        return st;
    }
    st = rref_remote(on.w, tenrec_rref_owner_name(r), function, on.args, n + 1, true, options, ret,
                     err);
    on_finish(&on);
    return st;
}
