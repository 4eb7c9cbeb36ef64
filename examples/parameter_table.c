/* SPDX-License-Identifier: Apache-2.0 */
/* parameter_table.c - a C object behind a remote reference; never copied. */
#include "parameter_table.h"

#include <string.h>

struct tenrec_tensor *weights_new(tenrec_error *err)
{
    const int64_t n = WEIGHTS;
    struct tenrec_tensor *t;

    if (tenrec_tensor_new(TENREC_FLOAT32, 1, &n, &t, err))
        return NULL;
    memset(tenrec_tensor_data(t), 0, WEIGHTS * sizeof(float));
    return t;
}

/* The program owns the table, so references free nothing. */
static const struct tenrec_object_type table_type = { .size = sizeof table_type, .name = "table" };

/* Reads the first argument of a call on the reference: the table. */
static tenrec_status table_of(struct tenrec_call *call, const struct tenrec_value **ret_rest,
                              size_t *ret_n, struct table **ret, tenrec_error *err)
{
    const struct tenrec_value *args = tenrec_call_args(call, ret_n);
    tenrec_status status;
    void *data;

    if (*ret_n == 0)
        return tenrec_fail(err, TENREC_EINVAL, "expected a call on a reference to a table");
    status = tenrec_object_get(&args[0], &table_type, &data, err);
    if (status)
        return status;
    *ret = data;
    *ret_rest = args + 1;
    --*ret_n;
    return TENREC_OK;
}

/* open(): returns the table, for tenrec_remote. */
static tenrec_status table_open(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct tenrec_object *o;
    struct tenrec_value v;
    tenrec_status status = tenrec_object_new(&table_type, arg, &o, err);

    if (status)
        return status;
    v = tenrec_value_object(o);
    status = tenrec_call_return(call, &v, err);
    tenrec_object_drop(o);
    return status;
}

/* join(table, seen): stores the reference to a trainer's sample counter. */
static tenrec_status table_join(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    const tenrec_peer id = tenrec_call_from(call).id;
    const struct tenrec_value *args = NULL;
    struct tenrec_rref *seen;
    struct table *t = NULL;
    size_t n;

    (void)arg;
    if (table_of(call, &args, &n, &t, err) || tenrec_value_unpack(args, n, err, "r", &seen))
        return err->code;
    if (id < 1 || id >= TRAINERS_MAX)
        return tenrec_fail(err, TENREC_EINVAL, "worker %d is no trainer", (int)id);
    pthread_mutex_lock(&t->lock);
    t->trainer[id].seen = tenrec_rref_share(seen);
    pthread_mutex_unlock(&t->lock);
    return TENREC_OK;
}

/* pull(table): returns the present weights. */
static tenrec_status table_pull(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    const struct tenrec_value *args = NULL;
    struct tenrec_tensor *weights;
    struct tenrec_value v;
    struct table *t = NULL;
    tenrec_status status;
    size_t n;

    (void)arg;
    if (table_of(call, &args, &n, &t, err))
        return err->code;
    pthread_mutex_lock(&t->lock);
    weights = tenrec_tensor_share(t->weights);
    pthread_mutex_unlock(&t->lock);
    v = tenrec_value_tensor(weights);
    status = tenrec_call_return(call, &v, err);
    tenrec_tensor_drop(weights);
    return status;
}

/* push(table, gradient, loss): returns true while more updates are wanted. */
static tenrec_status table_push(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    const struct tenrec_value *args = NULL;
    struct tenrec_tensor *gradient, *next;
    struct tenrec_value more;
    struct table *t = NULL;
    double loss;
    size_t n;

    (void)arg;
    if (table_of(call, &args, &n, &t, err) ||
        tenrec_value_unpack(args, n, err, "Tfd", &gradient, &loss))
        return err->code;
    if (tenrec_tensor_count(gradient) != WEIGHTS)
        return tenrec_fail(err, TENREC_EINVAL, "a gradient has %d elements", WEIGHTS);
    next = weights_new(err);
    if (!next)
        return err->code;
    pthread_mutex_lock(&t->lock);
    for (int i = 0; i < WEIGHTS; i++)
        ((float *)tenrec_tensor_data(next))[i] =
            ((const float *)tenrec_tensor_data(t->weights))[i] -
            RATE * ((const float *)tenrec_tensor_data(gradient))[i];
    tenrec_tensor_drop(t->weights);
    t->weights = next;
    t->loss = loss;
    more = tenrec_value_bool(++t->updates < t->wanted);
    pthread_cond_broadcast(&t->moved);
    pthread_mutex_unlock(&t->lock);
    return tenrec_call_return(call, &more, err);
}

/* done(table): returns when every trainer is done or lost. */
static tenrec_status table_done(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    const tenrec_peer id = tenrec_call_from(call).id;
    const struct tenrec_value *args = NULL;
    struct table *t = NULL;
    size_t n;

    (void)arg;
    if (table_of(call, &args, &n, &t, err))
        return err->code;
    if (id < 1 || id >= TRAINERS_MAX)
        return tenrec_fail(err, TENREC_EINVAL, "worker %d is no trainer", (int)id);
    pthread_mutex_lock(&t->lock);
    t->trainer[id].done = call;
    pthread_cond_broadcast(&t->moved);
    pthread_mutex_unlock(&t->lock);
    return TENREC_OK;
}

tenrec_status table_init(struct table *t, int updates, tenrec_error *err)
{
    memset(t, 0, sizeof *t);
    t->weights = weights_new(err);
    if (!t->weights)
        return err->code;
    t->wanted = updates;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->moved, NULL);
    return TENREC_OK;
}

void table_finish(struct table *t)
{
    tenrec_tensor_drop(t->weights);
    pthread_cond_destroy(&t->moved);
    pthread_mutex_destroy(&t->lock);
}

tenrec_status table_register(struct tenrec_worker *w, struct table *t, tenrec_error *err)
{
    static const struct {
        const char *name;
        tenrec_function_fn *fn;
        uint32_t flags;
    } function[] = {
        { "open", table_open, TENREC_INLINE }, { "join", table_join, TENREC_INLINE },
        { "pull", table_pull, TENREC_INLINE }, { "push", table_push, TENREC_POOL },
        { "done", table_done, TENREC_LATER },
    };
    tenrec_status status = TENREC_OK;

    for (size_t i = 0; i < sizeof function / sizeof function[0] && !status; i++)
        status = tenrec_worker_register_function(w, function[i].name, function[i].fn, t,
                                                 function[i].flags, err);
    return status;
}
