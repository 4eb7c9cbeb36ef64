/* SPDX-License-Identifier: Apache-2.0 */
#include "functions.h"
#include "../testing.h"
#include "basic_functions.h"

#include "cluster.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_changed = PTHREAD_COND_INITIALIZER;
static bool gate_open = true;
static atomic_int counted, waiting, arrived; /* the last: at the gate, ever */

void functions_close_gate(void)
{
    pthread_mutex_lock(&gate_lock);
    gate_open = false;
    pthread_mutex_unlock(&gate_lock);
}

void functions_open_gate(void)
{
    pthread_mutex_lock(&gate_lock);
    gate_open = true;
    pthread_cond_broadcast(&gate_changed);
    pthread_mutex_unlock(&gate_lock);
}

int functions_counted(void)
{
    return atomic_load(&counted);
}

int functions_waiting(void)
{
    return atomic_load(&waiting);
}

struct tenrec_future *functions_hold(struct tenrec_worker *w, const char *to)
{
    struct tenrec_future *f = NULL;
    const int before = atomic_load(&arrived);
    tenrec_error err;

    functions_close_gate();
    assert_int_equal(tenrec_rpc_async(w, to, "wait_gate", NULL, 0, NULL, &f, &err), TENREC_OK);
    assert_becomes(atomic_load(&arrived) != before);
    return f;
}

static tenrec_status fail_with(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    const char *text;
    tenrec_status st = tenrec_call_get_args(c, err, "s", &text);

    (void)arg;
    return st == TENREC_OK ? tenrec_fail(err, TENREC_EINVAL, "%s", text) : st;
}

static tenrec_status who(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_worker_info from = tenrec_call_from(c);
    struct tenrec_value v[] = { tenrec_value_text(from.name), tenrec_value_int(from.id),
                                tenrec_value_bool(tenrec_call_time_left(c) > 0) };
    struct tenrec_value all = tenrec_value_array(v, 3);

    (void)arg;
    return tenrec_call_return(c, &all, err);
}

static tenrec_status time_left(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_value v = tenrec_value_int(tenrec_call_time_left(c));

    (void)arg;
    return tenrec_call_return(c, &v, err);
}

/* Calls nest(depth - 1) on the caller, which calls back here, and so on. */
static tenrec_status nest(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_worker *w = tenrec_call_worker(c);
    struct tenrec_value *got = NULL, down, result;
    int64_t depth;
    tenrec_status st = tenrec_call_get_args(c, err, "i", &depth);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    result = tenrec_value_int(1);
    if (depth > 0) {
        down = tenrec_value_int(depth - 1);
        st = tenrec_rpc_sync(w, tenrec_call_from(c).name, "nest", &down, 1, NULL, &got, err);
        if (st != TENREC_OK)
            return st;
        result = tenrec_value_int(got->u.integer + 1);
        tenrec_value_drop(got);
    }
    return tenrec_call_return(c, &result, err);
}

static tenrec_status wait_gate(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    const bool patient = arg != NULL;
    struct tenrec_value canceled;

    atomic_fetch_add(&waiting, 1);
    atomic_fetch_add(&arrived, 1);
    pthread_mutex_lock(&gate_lock);
    while (!gate_open && (patient || !tenrec_call_canceled(c))) {
        struct timespec soon;
        clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_nsec += 5000000;
        if (soon.tv_nsec >= 1000000000) {
            soon.tv_nsec -= 1000000000;
            soon.tv_sec++;
        }
        pthread_cond_timedwait(&gate_changed, &gate_lock, &soon);
    }
    pthread_mutex_unlock(&gate_lock);
    atomic_fetch_sub(&waiting, 1);
    canceled = tenrec_value_bool(tenrec_call_canceled(c));
    return tenrec_call_return(c, &canceled, err);
}

static void *finish_call(void *arg)
{
    struct tenrec_call *c = arg;
    struct tenrec_value v;
    tenrec_error err = { .code = TENREC_OK };
    int64_t i;
    size_t n;
    const struct tenrec_value *args = tenrec_call_args(c, &n);

    if (tenrec_value_unpack(args, n, &err, "i", &i) == TENREC_OK) {
        v = tenrec_value_int(i * 2);
        tenrec_call_return(c, &v, &err);
    }
    tenrec_call_finish(c, err.code == TENREC_OK ? NULL : &err);
    return NULL;
}

static tenrec_status later(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    pthread_attr_t attr;
    pthread_t thread;
    int r;

    (void)arg;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    r = pthread_create(&thread, &attr, finish_call, c);
    pthread_attr_destroy(&attr);
    return r ? tenrec_fail_errno(err, TENREC_EOS, r, "no thread") : TENREC_OK;
}

static tenrec_status call_inline(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    (void)arg;
    return tenrec_rpc_sync(tenrec_call_worker(c), tenrec_call_from(c).name, "noop", NULL, 0, NULL,
                           NULL, err);
}

static tenrec_status count(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    (void)c, (void)arg, (void)err;
    atomic_fetch_add(&counted, 1);
    return TENREC_OK;
}

static tenrec_status sum(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *t;
    struct tenrec_value v;
    double total = 0;
    tenrec_status st = tenrec_call_get_args(c, err, "t", &t);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    for (uint64_t i = 0; i < tenrec_tensor_count(t); i++)
        total += ((const float *)tenrec_tensor_data(t))[i];
    v = tenrec_value_double(total);
    return tenrec_call_return(c, &v, err);
}

/* 0, 1, 2, ... as float32. */
static tenrec_status range(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *t = NULL;
    struct tenrec_value v;
    int64_t length;
    tenrec_status st = tenrec_call_get_args(c, err, "i", &length);

    (void)arg;
    if (st == TENREC_OK)
        st = tenrec_tensor_new(TENREC_FLOAT32, 1, &length, &t, err);
    if (st != TENREC_OK)
        return st;
    for (int64_t i = 0; i < length; i++)
        ((float *)tenrec_tensor_data(t))[i] = (float)i;
    v = tenrec_value_tensor(t);
    st = tenrec_call_return(c, &v, err);
    tenrec_tensor_drop(t);
    return st;
}

/* The last of these futures is known to the scope only. */
static tenrec_status forget_scope(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_future *f = NULL;
    tenrec_status st = tenrec_scope_begin(err);

    (void)arg;
    for (int i = 0; i < 2 && st == TENREC_OK; i++) {
        st = tenrec_rpc_async(tenrec_call_worker(c), tenrec_call_from(c).name, "count", NULL, 0,
                              NULL, &f, err);
        if (st == TENREC_OK)
            tenrec_future_drop(f);
        if (st == TENREC_OK && i == 0)
            st = tenrec_scope_begin(err);
    }
    return st;
}

void functions_offer(struct tenrec_worker *w, const char *name, tenrec_function_fn *fn,
                     uint32_t flags)
{
    tenrec_error err;

    if (tenrec_worker_register_function(w, name, fn, NULL, flags, &err) != TENREC_OK)
        fail_msg("%s", err.text);
}

void functions_register(struct tenrec_worker *w, size_t rank)
{
    (void)rank;
    functions_offer(w, "noop", basic_noop, TENREC_POOL);
    functions_offer(w, "noop_inline", basic_noop, TENREC_INLINE);
    functions_offer(w, "add", basic_add, TENREC_POOL);
    functions_offer(w, "add_inline", basic_add, TENREC_INLINE);
    functions_offer(w, "identity", basic_identity, TENREC_POOL);
    functions_offer(w, "identity_inline", basic_identity, TENREC_INLINE);
    functions_offer(w, "fail", fail_with, TENREC_POOL);
    functions_offer(w, "fail_inline", fail_with, TENREC_INLINE);
    functions_offer(w, "who", who, TENREC_INLINE);
    functions_offer(w, "time_left", time_left, TENREC_POOL);
    functions_offer(w, "nest", nest, TENREC_POOL);
    functions_offer(w, "wait_gate", wait_gate, TENREC_POOL);
    assert_int_equal(
        tenrec_worker_register_function(w, "wait_long", wait_gate, w, TENREC_POOL, NULL),
        TENREC_OK);
    functions_offer(w, "later", later, TENREC_LATER);
    functions_offer(w, "later_inline", later, TENREC_LATER | TENREC_INLINE);
    functions_offer(w, "call_inline", call_inline, TENREC_INLINE);
    functions_offer(w, "count", count, TENREC_INLINE);
    functions_offer(w, "forget_scope", forget_scope, TENREC_POOL);
    functions_offer(w, "forget_scope_inline", forget_scope, TENREC_INLINE);
    functions_offer(w, "sum", sum, TENREC_POOL);
    functions_offer(w, "range", range, TENREC_POOL);
}

tenrec_status functions_call_add(struct tenrec_worker *w, const char *to, int64_t a, int64_t b,
                                 tenrec_error *err)
{
    const struct tenrec_value args[] = { tenrec_value_int(a), tenrec_value_int(b) };
    struct tenrec_value *got = NULL;
    tenrec_status st = tenrec_rpc_sync(w, to, "add", args, 2, NULL, &got, err);

    if (st == TENREC_OK)
        assert_int_equal(got->u.integer, a + b);
    tenrec_value_drop(got);
    return st;
}

void functions_must_call_add(struct tenrec_worker *w, const char *to)
{
    tenrec_error err;

    if (functions_call_add(w, to, 2, 3, &err) != TENREC_OK)
        fail_msg("calling '%s': %s: %s", to, tenrec_status_name(err.code), err.text);
}
