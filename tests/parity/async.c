/* SPDX-License-Identifier: Apache-2.0 */
/* async.c - functions that answer later, from the callback of a future, and
 * those that block for a future which a callback completes. */
#include "parity_functions.h"

#include <pthread.h>
#include <stdlib.h>

/* ---- answers that come later ------------------------------------------------------ */

/* Answers `arg`, a call, with what the future has become. */
static void finish_with(struct tenrec_future *f, void *arg)
{
    struct tenrec_call *c = arg;
    const tenrec_error *why = tenrec_future_error(f);
    tenrec_error err;

    if (!why && tenrec_call_return(c, tenrec_future_value(f), &err) != TENREC_OK)
        why = &err;
    tenrec_call_finish(c, why);
}

/* Takes the future. */
static tenrec_status answer_with(struct tenrec_call *c, struct tenrec_future *f, tenrec_error *err)
{
    tenrec_status st = tenrec_future_add_callback(f, finish_with, c, err);

    tenrec_future_drop(f);
    return st;
}

/* The value of `f` plus the number at `arg`, which is freed. */
static tenrec_status plus(struct tenrec_future *f, void *arg, struct tenrec_value *ret,
                          tenrec_error *err)
{
    int64_t more = *(int64_t *)arg;

    free(arg);
    if (tenrec_future_error(f)) {
        *err = *tenrec_future_error(f);
        return err->code;
    }
    *ret = tenrec_value_int(tenrec_future_value(f)->u.integer + more);
    return TENREC_OK;
}

static int64_t *keep(int64_t i)
{
    int64_t *p = malloc(sizeof *p);

    if (p)
        *p = i;
    return p;
}

/* Puts the future of *f + more into its place. */
static tenrec_status chain(struct tenrec_future **f, int64_t more, tenrec_error *err)
{
    struct tenrec_future *sum = NULL;
    tenrec_status st = tenrec_future_then(*f, plus, keep(more), &sum, err);

    if (st != TENREC_OK)
        return st;
    tenrec_future_drop(*f);
    *f = sum;
    return TENREC_OK;
}

/* (to, x, y, z): what all of these take; the last may be missing. */
struct request {
    const char *to;
    int64_t x, y, z;
};

static tenrec_status read_request(struct tenrec_call *c, struct request *r, tenrec_error *err)
{

    r->z = 0;
    return tenrec_call_get_args(c, err, "sii|i", &r->to, &r->x, &r->y, &r->z);
}

static tenrec_status ask_add(struct tenrec_call *c, const char *to, int64_t x, int64_t y,
                             struct tenrec_future **ret, tenrec_error *err)
{
    const struct tenrec_value args[] = { tenrec_value_int(x), tenrec_value_int(y) };

    return tenrec_rpc_async(tenrec_call_worker(c), to, "add", args, 2, NULL, ret, err);
}

static tenrec_status async_add(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_future *f = NULL;
    struct request r;
    tenrec_status st = read_request(c, &r, err);

    (void)arg;
    if (st == TENREC_OK)
        st = ask_add(c, r.to, r.x, r.y, &f, err);
    return st == TENREC_OK ? answer_with(c, f, err) : st;
}

static tenrec_status async_add_chained(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_future *f = NULL;
    struct request r;
    tenrec_status st = read_request(c, &r, err);

    (void)arg;
    if (st == TENREC_OK)
        st = ask_add(c, r.to, r.x, r.y, &f, err);
    if (st == TENREC_OK)
        st = chain(&f, r.z, err);
    return st == TENREC_OK ? answer_with(c, f, err) : st;
}

/* (to, x, num, step) */
static tenrec_status async_add_chained_multi(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_future *f = NULL;
    struct request r;
    tenrec_status st = read_request(c, &r, err);

    (void)arg;
    if (st == TENREC_OK)
        st = ask_add(c, r.to, r.x, 0, &f, err);
    for (int64_t i = 0; i < r.y && st == TENREC_OK; i++)
        st = chain(&f, r.z, err);
    return st == TENREC_OK ? answer_with(c, f, err) : st;
}

static tenrec_status async_add_nested(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_future *f = NULL;
    struct tenrec_value args[3];
    struct request r;
    tenrec_status st = read_request(c, &r, err);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    args[0] = tenrec_value_text(r.to);
    args[1] = tenrec_value_int(r.x);
    args[2] = tenrec_value_int(r.y);
    st = tenrec_rpc_async(tenrec_call_worker(c), r.to, "async_add", args, 3, NULL, &f, err);
    if (st == TENREC_OK)
        st = chain(&f, r.z, err);
    return st == TENREC_OK ? answer_with(c, f, err) : st;
}

/* ---- futures that the function itself completes ------------------------------------- */

struct promise {
    struct tenrec_future *f; /* shares */
    struct tenrec_worker *worker;
    int64_t z;
    char to[TENREC_NAME_MAX + 1];
};

static struct promise *promise_new(struct tenrec_call *c, const struct request *r,
                                   struct tenrec_future *f)
{
    struct promise *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->f = tenrec_future_share(f);
    p->worker = tenrec_call_worker(c);
    p->z = r->z;
    snprintf(p->to, sizeof p->to, "%s", r->to);
    return p;
}

/* Sets the promise to the value plus z. */
static void set_promise(struct tenrec_future *f, void *arg)
{
    struct promise *p = arg;
    struct tenrec_value v = tenrec_value_nil();

    if (tenrec_future_error(f)) {
        tenrec_future_set_error(p->f, tenrec_future_error(f), NULL);
    } else {
        v = tenrec_value_int(tenrec_future_value(f)->u.integer + p->z);
        tenrec_future_set_value(p->f, &v, NULL);
    }
    tenrec_future_drop(p->f);
    free(p);
}

/* The same, but `to` adds z: a call from within a callback. */
static void add_more(struct tenrec_future *f, void *arg)
{
    struct promise *p = arg;
    struct tenrec_future *more = NULL;
    struct tenrec_value args[2];
    tenrec_error err;

    if (tenrec_future_error(f)) {
        set_promise(f, p);
        return;
    }
    args[0] = *tenrec_future_value(f);
    args[1] = tenrec_value_int(p->z);
    p->z = 0;
    if (tenrec_rpc_async(p->worker, p->to, "add", args, 2, NULL, &more, &err) == TENREC_OK)
        tenrec_future_add_callback(more, set_promise, p, &err);
    tenrec_future_drop(more);
}

/* A future of x + y + z: `fn` completes it once x + y has arrived from `to`. */
static tenrec_status promise_sum(struct tenrec_call *c, tenrec_future_fn *fn,
                                 struct tenrec_future **ret, tenrec_error *err)
{
    struct tenrec_future *f = NULL;
    struct request r;
    tenrec_status st = read_request(c, &r, err);

    if (st == TENREC_OK)
        st = tenrec_future_new(ret, err);
    if (st == TENREC_OK)
        st = ask_add(c, r.to, r.x, r.y, &f, err);
    if (st == TENREC_OK)
        st = tenrec_future_add_callback(f, fn, promise_new(c, &r, *ret), err);
    tenrec_future_drop(f);
    return st;
}

static tenrec_status async_add_with_future_ctor(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_future *f = NULL;
    tenrec_status st = promise_sum(c, set_promise, &f, err);

    (void)arg;
    return st == TENREC_OK ? answer_with(c, f, err) : st;
}

/* Blocks for the future; `arg` is not NULL when the callback calls again. */
static tenrec_status future_add(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_future *f = NULL;
    tenrec_status st = promise_sum(c, arg ? add_more : set_promise, &f, err);

    if (st == TENREC_OK)
        st = tenrec_future_wait(f, tenrec_call_time_left(c), err);
    if (st == TENREC_OK)
        st = tenrec_call_return(c, tenrec_future_value(f), err);
    tenrec_future_drop(f);
    return st;
}

/* ---- many futures, one answer ----------------------------------------------------------- */

struct fan {
    pthread_mutex_t lock;
    struct tenrec_call *call;
    int64_t left, sum;
};

static void fan_in(struct tenrec_future *f, void *arg)
{
    struct fan *fan = arg;
    struct tenrec_value v;
    bool last;

    pthread_mutex_lock(&fan->lock);
    if (!tenrec_future_error(f))
        fan->sum += tenrec_future_value(f)->u.integer;
    last = --fan->left == 0;
    pthread_mutex_unlock(&fan->lock);
    if (!last)
        return;
    v = tenrec_value_int(fan->sum);
    tenrec_call_return(fan->call, &v, NULL);
    tenrec_call_finish(fan->call, NULL);
    pthread_mutex_destroy(&fan->lock);
    free(fan);
}

/* (to, x, num, step) */
static tenrec_status async_add_multi_fanout(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_future *f[32];
    struct fan *fan = NULL;
    struct request r;
    tenrec_status st = read_request(c, &r, err);

    (void)arg;
    if (st == TENREC_OK && (r.y < 1 || r.y > 32 || !(fan = calloc(1, sizeof *fan))))
        st = tenrec_fail(err, TENREC_EINVAL, "expected 1 to 32 futures");
    if (st != TENREC_OK)
        return st;
    pthread_mutex_init(&fan->lock, NULL);
    fan->call = c;
    fan->left = r.y;
    for (int64_t i = 0; i < r.y; i++)
        if (ask_add(c, r.to, i == 0 ? r.x : 0, r.z, &f[i], err) != TENREC_OK)
            abort();
    /* The last of these may end the call: `r` is not looked at any more. */
    for (int64_t i = 0, n = r.y; i < n; i++) {
        tenrec_future_add_callback(f[i], fan_in, fan, NULL);
        tenrec_future_drop(f[i]);
    }
    return TENREC_OK;
}

/* ---- failures ---------------------------------------------------------------------------- */

static tenrec_status async_raise(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    (void)c, (void)arg;
    return tenrec_fail(err, TENREC_EREMOTE, "Expected error");
}

/* Answers with what is no value. */
static tenrec_status async_wrong_type(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_value wrong = { .type = 99 };
    tenrec_status st = tenrec_call_return(c, &wrong, err);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    tenrec_call_finish(c, NULL);
    return TENREC_OK;
}

tenrec_status functions_async(struct tenrec_worker *w, tenrec_error *err)
{
    static char nested[] = "";
    const struct {
        const char *name;
        tenrec_function_fn *fn;
        void *arg;
        uint32_t flags;
    } list[] = {
        { "async_add", async_add, NULL, TENREC_LATER },
        { "async_add_with_future_ctor", async_add_with_future_ctor, NULL, TENREC_LATER },
        { "async_add_chained", async_add_chained, NULL, TENREC_LATER },
        { "async_add_chained_multi", async_add_chained_multi, NULL, TENREC_LATER },
        { "async_add_nested", async_add_nested, NULL, TENREC_LATER },
        { "async_add_multi_fanout", async_add_multi_fanout, NULL, TENREC_LATER },
        { "async_raise", async_raise, NULL, TENREC_LATER },
        { "async_wrong_type", async_wrong_type, NULL, TENREC_LATER },
        { "future_add", future_add, NULL, TENREC_POOL },
        { "nested_callback_add", future_add, nested, TENREC_POOL },
    };
    tenrec_status st = TENREC_OK;

    for (size_t i = 0; i < sizeof list / sizeof list[0] && st == TENREC_OK; i++)
        st = tenrec_worker_register_function(w, list[i].name, list[i].fn, list[i].arg,
                                             list[i].flags, err);
    return st;
}
