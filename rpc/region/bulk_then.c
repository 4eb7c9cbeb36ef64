/* SPDX-License-Identifier: Apache-2.0 */
/* bulk_then.c - the call of a function of the owner that follows the entries of a batch. */
#include "rpc/region/bulk.h"

#include "core/base/clock.h"
#include "rpc/future/worker.h"

tenrec_status bulk_then_keep(struct bulk_then *t, const struct tenrec_bulk_options *o,
                             tenrec_error *err)
{
    const struct tenrec_value part[] = { tenrec_value_text(o->then),
                                         tenrec_value_array(o->args, o->n_args) };
    const struct tenrec_value call = tenrec_value_array(part, 2);
    tenrec_status st = tenrec_value_copy(&call, &t->call, err);

    if (st != TENREC_OK)
        tenrec_error_prefix(err, "then '%s'", o->then);
    return st;
}

/* What is left of the batch's time; 1 ms at least, as 0 is the default. */
static int64_t then_left_ms(const struct bulk_then *t)
{
    const int left = clock_left_ms(t->deadline_ns);

    return left < 0 ? TENREC_TIMEOUT_NONE : left > 0 ? left : 1;
}

/* The worker is entered. Takes `result` on success. */
static tenrec_status then_send(struct tenrec_worker *w, const struct bulk_then *t,
                               struct tenrec_future *result, tenrec_error *err)
{
    const struct tenrec_value *part = t->call->u.array;
    struct call_spec spec = { .to = t->to,
                              .function = part[0].u.text,
                              .op = "bulk_then",
                              .result = result,
                              .want_value = true };
    struct tenrec_future *f;
    tenrec_status st = call_begin_now(w, &spec, then_left_ms(t), err);

    if (st == TENREC_OK)
        st = call_write(w, TENREC_MSG_CALL, &spec, NULL, part[1].u.array, part[1].n, &f, err);
    if (st == TENREC_OK)
        tenrec_future_drop(f);
    return st;
}

void bulk_then_begin(struct tenrec_worker *w, const struct bulk_then *t,
                     struct tenrec_future *result)
{
    tenrec_error why;
    tenrec_status st = worker_enter(w, &why);

    if (st == TENREC_OK) {
        st = then_send(w, t, tenrec_future_share(result), &why);
        if (st != TENREC_OK)
            tenrec_future_drop(result);
        worker_leave(w);
    }
    if (st != TENREC_OK)
        future_complete_error(result, &why);
}
