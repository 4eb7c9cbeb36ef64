/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange.h"
#include "../support/basic_functions.h"

#include <pthread.h>
#include <stdlib.h>
#include <tenrec/trace.h>

enum { GROUP_MAX = 64, HELD_MAX = 64, KINDS = 3 };

static pthread_mutex_t held_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tenrec_call *held[HELD_MAX];
static int n_held;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static int n_standing, releases; /* the former: since the last release */

static tenrec_status scale(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *in, *out = NULL;
    const struct tenrec_tensor_desc *desc;
    struct tenrec_value result;
    tenrec_status st = tenrec_call_get_args(c, err, "t", &in);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    desc = tenrec_tensor_desc(in);
    st = tenrec_tensor_new(TENREC_FLOAT32, desc->ndim, desc->shape, &out, err);
    if (st != TENREC_OK)
        return st;
    for (uint64_t i = 0; i < tenrec_tensor_count(in); i++)
        ((float *)tenrec_tensor_data(out))[i] = 2 * ((const float *)tenrec_tensor_data(in))[i];
    result = tenrec_value_tensor(out);
    st = tenrec_call_return(c, &result, err);
    tenrec_tensor_drop(out);
    return st;
}

static tenrec_status hold(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    (void)arg;
    pthread_mutex_lock(&held_lock);
    if (n_held < HELD_MAX)
        held[n_held++] = c;
    else
        st = tenrec_fail(err, TENREC_EAGAIN, "%d calls are held already", HELD_MAX);
    pthread_mutex_unlock(&held_lock);
    return st;
}

/* The same on a thread of the pool, which it blocks. */
static tenrec_status stand(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    int round;

    (void)c, (void)arg, (void)err;
    pthread_mutex_lock(&held_lock);
    round = releases;
    n_standing++;
    while (round == releases)
        pthread_cond_wait(&released, &held_lock);
    pthread_mutex_unlock(&held_lock);
    return TENREC_OK;
}

int exchange_held(void)
{
    int n;

    pthread_mutex_lock(&held_lock);
    n = n_held + n_standing;
    pthread_mutex_unlock(&held_lock);
    return n;
}

int exchange_release(void)
{
    struct tenrec_call *all[HELD_MAX];
    int n;

    pthread_mutex_lock(&held_lock);
    n = n_held;
    memcpy(all, held, sizeof all);
    n_held = n_standing = 0;
    releases++;
    pthread_cond_broadcast(&released);
    pthread_mutex_unlock(&held_lock);
    for (int i = 0; i < n; i++)
        tenrec_call_finish(all[i], NULL);
    return n;
}

/* Calls itself on the first worker of its arguments with the rest; answers its own trace. */
static tenrec_status relay(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    char trace[TENREC_TRACEPARENT_SIZE] = "none";
    struct tenrec_value own;
    tenrec_status st = TENREC_OK;
    size_t n;
    const struct tenrec_value *way = tenrec_call_args(c, &n);

    (void)arg;
    if (n > 0)
        st = tenrec_rpc_sync(tenrec_call_worker(c), way[0].u.text, "relay", way + 1, n - 1, NULL,
                             NULL, err);
    if (st != TENREC_OK)
        return st;
    tenrec_call_trace(c, trace);
    own = tenrec_value_text(trace);
    return tenrec_call_return(c, &own, err);
}

tenrec_status exchange_register(struct tenrec_worker *w, tenrec_error *err)
{
    static const struct {
        const char *name;
        tenrec_function_fn *fn;
        uint32_t flags;
    } all[] = {
        { "add", basic_add, TENREC_INLINE },
        { "echo", basic_echo, TENREC_POOL },
        { "scale", scale, TENREC_POOL },
        { "relay", relay, TENREC_POOL },
        { "hold", hold, TENREC_LATER | TENREC_INLINE },
        { "stand", stand, TENREC_POOL },
    };
    tenrec_status st = TENREC_OK;

    for (size_t i = 0; i < sizeof all / sizeof all[0] && st == TENREC_OK; i++)
        st = tenrec_worker_register_function(w, all[i].name, all[i].fn, NULL, all[i].flags, err);
    return st;
}

/* The calls of one round to a worker, and their answers. */
struct sent {
    int64_t a, b;
    char text[64];
    struct tenrec_tensor *tensor;
    struct tenrec_future *answer[KINDS];
};

static void sent_drop(struct sent *s)
{
    for (size_t i = 0; i < KINDS; i++)
        tenrec_future_drop(s->answer[i]);
    tenrec_tensor_drop(s->tensor);
}

static tenrec_status send(struct tenrec_worker *w, const struct tenrec_worker_info *me,
                          const struct tenrec_worker_info *to, int round, struct sent *s,
                          tenrec_error *err)
{
    const int64_t length = 1 + (int64_t)me->id * 1000 + to->id;
    struct tenrec_value arg[2];
    tenrec_status st;

    s->a = me->id * 1000 + to->id;
    s->b = -round;
    snprintf(s->text, sizeof s->text, "%d: from %d to %d, \u00fcber", round, me->id, to->id);
    st = tenrec_tensor_new(TENREC_FLOAT32, 1, &length, &s->tensor, err);
    for (int64_t i = 0; st == TENREC_OK && i < length; i++)
        ((float *)tenrec_tensor_data(s->tensor))[i] = (float)(i + round);
    arg[0] = tenrec_value_int(s->a);
    arg[1] = tenrec_value_int(s->b);
    if (st == TENREC_OK)
        st = tenrec_rpc_async(w, to->name, "add", arg, 2, NULL, &s->answer[0], err);
    arg[0] = tenrec_value_text(s->text);
    if (st == TENREC_OK)
        st = tenrec_rpc_async(w, to->name, "echo", arg, 1, NULL, &s->answer[1], err);
    if (st == TENREC_OK) {
        arg[0] = tenrec_value_tensor(s->tensor);
        st = tenrec_rpc_async(w, to->name, "scale", arg, 1, NULL, &s->answer[2], err);
    }
    return st;
}

static bool is_twice(const struct tenrec_value *v, struct tenrec_tensor *sent)
{
    const float *in = tenrec_tensor_data(sent), *out;

    if (v->type != TENREC_VALUE_TENSOR ||
        tenrec_tensor_count(v->u.tensor) != tenrec_tensor_count(sent))
        return false;
    out = tenrec_tensor_data(v->u.tensor);
    for (uint64_t i = 0; i < tenrec_tensor_count(sent); i++)
        if (out[i] < 2 * in[i] || out[i] > 2 * in[i])
            return false;
    return true;
}

tenrec_status exchange_tensor(struct tenrec_worker *w, const char *to, int64_t count, int64_t ms,
                              tenrec_error *err)
{
    const struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = ms };
    struct tenrec_tensor *t = NULL;
    struct tenrec_value *ret = NULL, arg;
    tenrec_status st = tenrec_tensor_new(TENREC_FLOAT32, 1, &count, &t, err);

    for (int64_t i = 0; st == TENREC_OK && i < count; i++)
        ((float *)tenrec_tensor_data(t))[i] = (float)(i * 7 % 1000003);
    if (st == TENREC_OK) {
        arg = tenrec_value_tensor(t);
        st = tenrec_rpc_sync(w, to, "scale", &arg, 1, &o, &ret, err);
    }
    if (st == TENREC_OK && !is_twice(ret, t))
        st = tenrec_fail(err, TENREC_EINVAL, "'%s' sends back other numbers", to);
    tenrec_value_drop(ret);
    tenrec_tensor_drop(t);
    return st;
}

static tenrec_status check(const struct tenrec_worker_info *to, struct sent *s, tenrec_error *err)
{
    const struct tenrec_value *v[KINDS];
    tenrec_status st = tenrec_future_wait_all(s->answer, KINDS, TENREC_TIMEOUT_NONE, err);

    if (st != TENREC_OK)
        return st;
    for (size_t i = 0; i < KINDS; i++)
        v[i] = tenrec_future_value(s->answer[i]);
    if (v[0]->type != TENREC_VALUE_INT || v[0]->u.integer != s->a + s->b)
        return tenrec_fail(err, TENREC_EINVAL, "'%s' adds wrongly", to->name);
    if (v[1]->type != TENREC_VALUE_TEXT || strcmp(v[1]->u.text, s->text) != 0)
        return tenrec_fail(err, TENREC_EINVAL, "'%s' sends back another text", to->name);
    if (!is_twice(v[2], s->tensor))
        return tenrec_fail(err, TENREC_EINVAL, "'%s' scales wrongly", to->name);
    return TENREC_OK;
}

static tenrec_status one_round(struct tenrec_worker *w, int round, int *calls, tenrec_error *err)
{
    struct tenrec_worker_info me, all[GROUP_MAX];
    struct sent *sent = calloc(GROUP_MAX, sizeof *sent);
    size_t n = 0;
    tenrec_status st = tenrec_get_worker_info(w, NULL, &me, err);

    if (!sent)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a round");
    if (st == TENREC_OK)
        st = tenrec_worker_get_infos(w, all, GROUP_MAX, &n, err);
    if (st == TENREC_OK && n > GROUP_MAX)
        st = tenrec_fail(err, TENREC_ETOOBIG, "a group of %zu workers", n);
    for (size_t i = 0; st == TENREC_OK && i < n; i++)
        st = send(w, &me, &all[i], round, &sent[i], err);
    for (size_t i = 0; st == TENREC_OK && i < n; i++)
        if ((st = check(&all[i], &sent[i], err)) == TENREC_OK)
            *calls += KINDS;
    for (size_t i = 0; i < n && i < GROUP_MAX; i++)
        sent_drop(&sent[i]);
    free(sent);
    return st;
}

tenrec_status exchange_all(struct tenrec_worker *w, int rounds, int *ret_calls, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    *ret_calls = 0;
    for (int i = 0; i < rounds && st == TENREC_OK; i++)
        st = one_round(w, i, ret_calls, err);
    return st;
}
