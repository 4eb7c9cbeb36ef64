/* SPDX-License-Identifier: Apache-2.0 */
#include "parity_functions.h"

#include "../support/basic_functions.h"

#include <poll.h>
#include <stdatomic.h>

static atomic_bool gates[FUNCTIONS_WORLD];
static _Atomic int64_t values[FUNCTIONS_WORLD];
static atomic_int counts[FUNCTIONS_WORLD], layers;

void functions_reset(void)
{
    for (int i = 0; i < FUNCTIONS_WORLD; i++) {
        atomic_store(&gates[i], false);
        atomic_store(&values[i], -1);
        atomic_store(&counts[i], 0);
    }
    atomic_store(&layers, 0);
}

void gate_open(int32_t rank)
{
    atomic_store(&gates[rank], true);
}

void gate_wait(int32_t rank)
{
    while (!atomic_load(&gates[rank]))
        poll(NULL, 0, 1);
}

int64_t value_of(int32_t rank)
{
    return atomic_load(&values[rank]);
}

int count_of(int32_t rank)
{
    return atomic_load(&counts[rank]);
}

int layers_run(void)
{
    return atomic_load(&layers);
}

static int32_t my_rank(struct tenrec_call *c)
{
    struct tenrec_worker_info me = { .id = 0 };

    tenrec_get_worker_info(tenrec_call_worker(c), NULL, &me, NULL);
    return me.id;
}

static tenrec_status give_int(struct tenrec_call *c, int64_t i, tenrec_error *err)
{
    struct tenrec_value v = tenrec_value_int(i);

    return tenrec_call_return(c, &v, err);
}

/* ---- sums ---------------------------------------------------------------------- */

static double number(const struct tenrec_value *v, uint64_t i)
{
    if (v->type == TENREC_VALUE_TENSOR)
        return ((const float *)tenrec_tensor_data(v->u.tensor))[i];
    return v->type == TENREC_VALUE_INT ? (double)v->u.integer : v->u.number;
}

static tenrec_status add_tensors(const struct tenrec_value *x, const struct tenrec_value *y,
                                 struct tenrec_value **ret, tenrec_error *err)
{
    const struct tenrec_tensor_desc *d = tenrec_tensor_desc(x->u.tensor);
    struct tenrec_tensor *sum = NULL;
    struct tenrec_value v;
    tenrec_status st;

    if (y->type == TENREC_VALUE_TENSOR &&
        tenrec_tensor_count(x->u.tensor) != tenrec_tensor_count(y->u.tensor))
        return tenrec_fail(err, TENREC_EINVAL, "the size of tensor a (%llu) must match b (%llu)",
                           (unsigned long long)tenrec_tensor_count(x->u.tensor),
                           (unsigned long long)tenrec_tensor_count(y->u.tensor));
    if ((st = tenrec_tensor_new(TENREC_FLOAT32, d->ndim, d->shape, &sum, err)) != TENREC_OK)
        return st;
    for (uint64_t i = 0; i < tenrec_tensor_count(sum); i++)
        ((float *)tenrec_tensor_data(sum))[i] = (float)(number(x, i) + number(y, i));
    v = tenrec_value_tensor(sum);
    st = tenrec_value_copy(&v, ret, err);
    tenrec_tensor_drop(sum);
    return st;
}

tenrec_status add_values(const struct tenrec_value *x, const struct tenrec_value *y,
                         struct tenrec_value **ret, tenrec_error *err)
{
    struct tenrec_value v;

    if (x->type == TENREC_VALUE_TENSOR)
        return add_tensors(x, y, ret, err);
    if (x->type != TENREC_VALUE_INT || y->type != TENREC_VALUE_INT)
        return tenrec_fail(err, TENREC_EINVAL, "cannot add %s and %s",
                           tenrec_value_type_name(x->type), tenrec_value_type_name(y->type));
    v = tenrec_value_int(x->u.integer + y->u.integer);
    return tenrec_value_copy(&v, ret, err);
}

static tenrec_status give_sum(struct tenrec_call *c, const struct tenrec_value *x,
                              const struct tenrec_value *y, tenrec_error *err)
{
    struct tenrec_value *sum = NULL;
    tenrec_status st = add_values(x, y, &sum, err);

    if (st == TENREC_OK)
        st = tenrec_call_return(c, sum, err);
    tenrec_value_drop(sum);
    return st;
}

static tenrec_status add(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    const struct tenrec_value *x, *y;
    tenrec_status st = tenrec_call_get_args(c, err, "vv", &x, &y);

    (void)arg;
    return st == TENREC_OK ? give_sum(c, x, y, err) : st;
}

static tenrec_status three(struct tenrec_call *c, int64_t a[3], tenrec_error *err)
{

    return tenrec_call_get_args(c, err, "iii", &a[0], &a[1], &a[2]);
}

static tenrec_status minimum(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    int64_t a[3], least;
    tenrec_status st = three(c, a, err);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    least = a[0] < a[1] ? a[0] : a[1];
    return give_int(c, least < a[2] ? least : a[2], err);
}

static tenrec_status sum3(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    int64_t a[3];
    tenrec_status st = three(c, a, err);

    (void)arg;
    return st == TENREC_OK ? give_int(c, a[0] + a[1] + a[2], err) : st;
}

static tenrec_status named_sum(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    static const char *const names[] = { "a", "b", "c" };
    const struct tenrec_value *map, *v;
    int64_t sum = 0;
    tenrec_status st = tenrec_call_get_args(c, err, "v", &map);

    (void)arg;
    for (int i = 0; i < 3 && st == TENREC_OK; i++) {
        v = tenrec_value_find(map, names[i]);
        if (!v || v->type != TENREC_VALUE_INT)
            st = tenrec_fail(err, TENREC_EINVAL, "'%s' is missing", names[i]);
        else
            sum += v->u.integer;
    }
    return st == TENREC_OK ? give_int(c, sum, err) : st;
}

static tenrec_status sum_all(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    const struct tenrec_value *list, *map;
    struct tenrec_value *sum = NULL, *next;
    size_t n;
    const struct tenrec_value *args = tenrec_call_args(c, &n);
    tenrec_status st = tenrec_value_unpack(args, n, err, "vv", &list, &map);

    (void)arg;
    if (st == TENREC_OK &&
        (list->type != TENREC_VALUE_ARRAY || map->type != TENREC_VALUE_MAP || list->n == 0))
        st = tenrec_fail(err, TENREC_EINVAL, "expected an array and a map");
    if (st == TENREC_OK)
        st = tenrec_value_copy(&list->u.array[0], &sum, err);
    for (uint64_t i = 1; st == TENREC_OK && i < list->n + map->n; i++) {
        const struct tenrec_value *v =
            i < list->n ? &list->u.array[i] : &map->u.map[i - list->n].value;
        next = NULL;
        st = add_values(sum, v, &next, err);
        tenrec_value_drop(sum);
        sum = next;
    }
    if (st == TENREC_OK)
        st = tenrec_call_return(c, sum, err);
    tenrec_value_drop(sum);
    return st;
}

/* ---- tensors -------------------------------------------------------------------- */

static tenrec_status nonzero(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *t, *at = NULL;
    struct tenrec_value v;
    int64_t shape[2] = { 0, 2 }, k = 0, cols;
    const float *x;
    tenrec_status st = tenrec_call_get_args(c, err, "t", &t);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    x = tenrec_tensor_data(t);
    cols = tenrec_tensor_desc(t)->shape[1];
    for (uint64_t i = 0; i < tenrec_tensor_count(t); i++)
        shape[0] += x[i] != 0;
    if ((st = tenrec_tensor_new(TENREC_INT64, 2, shape, &at, err)) != TENREC_OK)
        return st;
    for (int64_t i = 0; i < (int64_t)tenrec_tensor_count(t); i++) {
        if (x[i] == 0)
            continue;
        ((int64_t *)tenrec_tensor_data(at))[k++] = i / cols;
        ((int64_t *)tenrec_tensor_data(at))[k++] = i % cols;
    }
    v = tenrec_value_tensor(at);
    st = tenrec_call_return(c, &v, err);
    tenrec_tensor_drop(at);
    return st;
}

static tenrec_status heavy(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *t;
    float *x;
    tenrec_status st = tenrec_call_get_args(c, err, "t", &t);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    x = tenrec_tensor_data(t);
    for (int k = 1; k < 10; k++)
        for (uint64_t i = 0; i < tenrec_tensor_count(t); i++)
            x[i] = x[i] * (float)k / (float)(k + 1);
    return give_int(c, 0, err);
}

/* ---- others ----------------------------------------------------------------------- */

static tenrec_status light(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    (void)arg;
    return give_int(c, 0, err);
}

static tenrec_status no_result(struct tenrec_call *c, void *arg, tenrec_error *err)
{

    (void)arg;
    return tenrec_call_get_args(c, err, "");
}

static tenrec_status raise_error(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    (void)c;
    return tenrec_fail(err, TENREC_EREMOTE, "%s", (const char *)arg);
}

static tenrec_status gate(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    (void)arg, (void)err;
    gate_wait(tenrec_call_from(c).id); /* also when the caller has given up */
    return TENREC_OK;
}

static tenrec_status set_value(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    int64_t i;
    tenrec_status st = tenrec_call_get_args(c, err, "i", &i);

    (void)arg;
    if (st == TENREC_OK)
        atomic_store(&values[my_rank(c)], i);
    return st;
}

static tenrec_status my_id(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    (void)arg;
    return give_int(c, my_rank(c), err);
}

static tenrec_status count(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    (void)err;
    if (arg)
        atomic_fetch_add(&counts[my_rank(c)], 1);
    else
        atomic_store(&counts[my_rank(c)], 0);
    return TENREC_OK;
}

static tenrec_status nested_add(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_value *got = NULL, ask[2];
    struct tenrec_tensor *t;
    const char *dst;
    tenrec_status st = tenrec_call_get_args(c, err, "st", &dst, &t);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    ask[0] = tenrec_value_tensor(t);
    ask[1] = tenrec_value_int(1);
    st = tenrec_rpc_sync(tenrec_call_worker(c), dst, "add", ask, 2, NULL, &got, err);
    if (st == TENREC_OK)
        st = tenrec_call_return(c, got, err);
    tenrec_value_drop(got);
    return st;
}

static tenrec_status run_layers(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_future *f = NULL;
    struct tenrec_value left;
    char next[TENREC_NAME_MAX + 1];
    int64_t ttl;
    size_t world = 0;
    struct tenrec_worker *w = tenrec_call_worker(c);
    tenrec_status st = tenrec_call_get_args(c, err, "i", &ttl);

    (void)arg;
    atomic_fetch_add(&layers, 1);
    if (st == TENREC_OK && ttl > 0)
        st = tenrec_worker_get_infos(w, NULL, 0, &world, err);
    if (st != TENREC_OK || ttl == 0)
        return st;
    left = tenrec_value_int(ttl - 1);
    tenrec_test_worker_name((my_rank(c) + 1) % (int32_t)world, next);
    st = tenrec_rpc_async(w, next, "layers", &left, 1, NULL, &f, err);
    tenrec_future_drop(f);
    return st;
}

tenrec_status functions_setup(struct tenrec_worker *w, int32_t rank, void *arg, tenrec_error *err)
{
    static char one[] = "", text[] = "Expected error", lines[] = "Expected\nerror \\n\\t";
    const struct {
        const char *name;
        tenrec_function_fn *fn;
        void *arg;
        uint32_t flags;
    } list[] = {
        { "noop", basic_noop, NULL, TENREC_POOL },
        { "no_result", no_result, NULL, TENREC_POOL },
        { "light", light, NULL, TENREC_POOL },
        { "heavy", heavy, NULL, TENREC_POOL },
        { "identity", basic_echo, NULL, TENREC_POOL },
        { "add", add, NULL, TENREC_POOL },
        { "add_inline", add, NULL, TENREC_INLINE },
        { "min", minimum, NULL, TENREC_POOL },
        { "sum3", sum3, NULL, TENREC_POOL },
        { "named_sum", named_sum, NULL, TENREC_POOL },
        { "sum_all", sum_all, NULL, TENREC_POOL },
        { "nonzero", nonzero, NULL, TENREC_POOL },
        { "raise", raise_error, text, TENREC_POOL },
        { "raise_lines", raise_error, lines, TENREC_POOL },
        { "gate", gate, NULL, TENREC_POOL },
        { "set_value", set_value, NULL, TENREC_INLINE },
        { "my_id", my_id, NULL, TENREC_INLINE },
        { "count", count, one, TENREC_INLINE },
        { "reset_count", count, NULL, TENREC_INLINE },
        { "nested_add", nested_add, NULL, TENREC_POOL },
        { "layers", run_layers, NULL, TENREC_POOL },
    };
    tenrec_status st = TENREC_OK;

    (void)rank, (void)arg;
    for (size_t i = 0; i < sizeof list / sizeof list[0] && st == TENREC_OK; i++)
        st = tenrec_worker_register_function(w, list[i].name, list[i].fn, list[i].arg,
                                             list[i].flags, err);
    return st == TENREC_OK ? functions_async(w, err) : st;
}
