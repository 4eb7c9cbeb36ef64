/* SPDX-License-Identifier: Apache-2.0 */
#include <tenrec/profiler.h>

#include "profiler_functions.h"

#include "../support/functions.h"
#include "../testing.h"

#include <stdlib.h>

static tenrec_status marked(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_profiler_mark *step = tenrec_profiler_mark_begin(tenrec_call_worker(c), "step"),
                                *inner;

    (void)arg, (void)err;
    inner = tenrec_profiler_mark_begin(tenrec_call_worker(c), "inner");
    tenrec_profiler_mark_end(inner);
    tenrec_profiler_mark_end(step);
    return TENREC_OK;
}

static tenrec_status many(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    int64_t times = 0;
    tenrec_status st = tenrec_call_get_args(c, err, "i", &times);

    (void)arg;
    for (int64_t i = 0; i < times; i++)
        tenrec_profiler_mark_end(tenrec_profiler_mark_begin(tenrec_call_worker(c), "tick"));
    return st;
}

/* No longer than its own caller waits. */
static tenrec_status through(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    const int64_t left = tenrec_call_time_left(c);
    const struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = left > 0 ? left : 1 };
    const char *to, *fn;
    tenrec_status st = tenrec_call_get_args(c, err, "ss", &to, &fn);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    return tenrec_rpc_sync(tenrec_call_worker(c), to, fn, NULL, 0, &o, NULL, err);
}

/* When the gate is open. */
static tenrec_status give(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_worker *w = tenrec_call_worker(c);
    const struct tenrec_value one = tenrec_value_int(1);
    struct tenrec_worker_info self;
    struct tenrec_rref *r;
    struct tenrec_value v;
    tenrec_status st = tenrec_get_worker_info(w, NULL, &self, err);

    (void)arg;
    if (st == TENREC_OK)
        st = tenrec_rpc_sync(w, self.name, "wait_long", NULL, 0, NULL, NULL, err);
    if (st == TENREC_OK)
        st = tenrec_rref_new(w, &one, &r, err);
    if (st != TENREC_OK)
        return st;
    v = tenrec_value_rref(r);
    st = tenrec_call_return(c, &v, err);
    tenrec_rref_drop(r);
    return st;
}

/* In a callback: no wait is allowed here. */
static void passed(struct tenrec_future *f, void *arg)
{
    struct tenrec_call *c = arg;
    struct tenrec_profiler_mark *r = tenrec_profiler_mark_begin_in_call(c, "passed");
    struct tenrec_future *more = NULL;
    tenrec_error err;

    if (tenrec_rpc_async(tenrec_call_worker(c), tenrec_call_from(c).name, "noop", NULL, 0, NULL,
                         &more, &err) == TENREC_OK)
        tenrec_future_drop(more);
    tenrec_profiler_mark_end(r);
    tenrec_call_finish(c, tenrec_future_error(f));
}

static tenrec_status pass(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_future *f;
    const char *to, *fn;
    tenrec_status st = tenrec_call_get_args(c, err, "ss", &to, &fn);

    (void)arg;
    if (st == TENREC_OK)
        st = tenrec_rpc_async(tenrec_call_worker(c), to, fn, NULL, 0, NULL, &f, err);
    if (st != TENREC_OK)
        return st;
    st = tenrec_future_add_callback(f, passed, c, err);
    tenrec_future_drop(f);
    return st;
}

void profiler_functions_register(struct tenrec_worker *w, size_t rank)
{
    functions_register(w, rank);
    functions_offer(w, "marked", marked, TENREC_POOL);
    functions_offer(w, "many", many, TENREC_POOL);
    functions_offer(w, "through", through, TENREC_POOL);
    functions_offer(w, "give", give, TENREC_POOL);
    functions_offer(w, "pass", pass, TENREC_LATER);
}
