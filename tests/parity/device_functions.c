/* SPDX-License-Identifier: Apache-2.0 */
#include "device_functions.h"
#include "../support/tensors.h"

#include "devices.h"

static struct tenrec_device device_of(int64_t i)
{
    return i < 0 ? CPU : GPU((int32_t)i);
}

static int64_t index_of(const struct tenrec_tensor *t)
{
    const struct tenrec_device d = tenrec_tensor_desc(t)->device;

    return d.kind == TENREC_CPU ? -1 : d.index;
}

static tenrec_status wrong_devices(tenrec_error *err)
{
    return tenrec_fail(err, TENREC_EINVAL, "wrong device affinity");
}

static tenrec_status two(struct tenrec_call *c, struct tenrec_tensor **x, struct tenrec_tensor **y,
                         tenrec_error *err)
{

    return tenrec_call_get_args(c, err, "tt", x, y);
}

/* Takes `t`. */
static tenrec_status return_tensor(struct tenrec_call *c, struct tenrec_tensor *t,
                                   tenrec_error *err)
{
    const struct tenrec_value v = tenrec_value_tensor(t);
    tenrec_status st = tenrec_call_return(c, &v, err);

    tenrec_tensor_drop(t);
    return st;
}

/* fn(x.to(device), y.to(device)) */
typedef tenrec_status op_fn(struct tenrec_tensor *x, struct tenrec_tensor *y,
                            struct tenrec_tensor **ret, tenrec_error *err);

static tenrec_status combine_on(struct tenrec_device device, op_fn *fn, struct tenrec_tensor *x,
                                struct tenrec_tensor *y, struct tenrec_tensor **ret,
                                tenrec_error *err)
{
    struct tenrec_tensor *a = NULL, *b = NULL;
    tenrec_status st = tenrec_tensor_to(x, device, &a, err);

    if (st == TENREC_OK)
        st = tenrec_tensor_to(y, device, &b, err);
    if (st == TENREC_OK)
        st = fn(a, b, ret, err);
    tenrec_tensor_drop(a);
    tenrec_tensor_drop(b);
    return st;
}

/* fn(x, y).to(device) */
static tenrec_status combine_to(struct tenrec_device device, op_fn *fn, struct tenrec_tensor *x,
                                struct tenrec_tensor *y, struct tenrec_tensor **ret,
                                tenrec_error *err)
{
    struct tenrec_tensor *z = NULL;
    tenrec_status st = fn(x, y, &z, err);

    if (st == TENREC_OK)
        st = tenrec_tensor_to(z, device, ret, err);
    tenrec_tensor_drop(z);
    return st;
}

/* ---- placement ------------------------------------------------------------------------ */

static tenrec_status gpu_add(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *x, *y, *z = NULL;
    tenrec_status st = two(c, &x, &y, err);

    (void)arg;
    if (st == TENREC_OK && (index_of(x) != 1 || index_of(y) != 1))
        st = wrong_devices(err);
    if (st == TENREC_OK)
        st = combine_to(GPU(0), vector_add, x, y, &z, err);
    return st == TENREC_OK ? return_tensor(c, z, err) : st;
}

static tenrec_status add(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *x, *y, *z = NULL;
    tenrec_status st = two(c, &x, &y, err);

    (void)arg;
    if (st == TENREC_OK)
        st = vector_add(x, y, &z, err);
    return st == TENREC_OK ? return_tensor(c, z, err) : st;
}

static tenrec_status gpu_add_given(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *x, *y, *z = NULL;
    int64_t x_to, y_to, z_to;
    tenrec_status st = tenrec_call_get_args(c, err, "ttiii", &x, &y, &x_to, &y_to, &z_to);

    (void)arg;
    if (st == TENREC_OK && (index_of(x) != x_to || index_of(y) != y_to))
        st = wrong_devices(err);
    if (st == TENREC_OK)
        st = combine_on(device_of(z_to), vector_add, x, y, &z, err);
    return st == TENREC_OK ? return_tensor(c, z, err) : st;
}

static tenrec_status return_list(struct tenrec_call *c, struct tenrec_tensor **t, size_t n,
                                 tenrec_status st, tenrec_error *err)
{
    struct tenrec_value item[4], list;

    for (size_t i = 0; i < n && st == TENREC_OK; i++)
        item[i] = tenrec_value_tensor(t[i]);
    list = tenrec_value_array(item, n);
    if (st == TENREC_OK)
        st = tenrec_call_return(c, &list, err);
    for (size_t i = 0; i < n; i++)
        tenrec_tensor_drop(t[i]);
    return st;
}

static tenrec_status gpu_add_multi(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *x, *y, *ret[2] = { NULL, NULL };
    tenrec_status st = two(c, &x, &y, err);

    (void)arg;
    if (st == TENREC_OK && (index_of(x) != 1 || index_of(y) != 0))
        st = wrong_devices(err);
    if (st == TENREC_OK)
        st = combine_on(GPU(0), vector_add, x, y, &ret[0], err);
    if (st == TENREC_OK)
        st = combine_on(GPU(1), vector_subtract, x, y, &ret[1], err);
    return return_list(c, ret, 2, st, err);
}

static tenrec_status add_return_to_gpus(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *x, *y, *ret[4] = { NULL, NULL, NULL, NULL };
    tenrec_status st = two(c, &x, &y, err);

    (void)arg;
    if (st == TENREC_OK && (index_of(x) != -1 || index_of(y) != -1))
        st = wrong_devices(err);
    if (st == TENREC_OK)
        st = combine_to(GPU(0), vector_add, x, y, &ret[0], err);
    if (st == TENREC_OK)
        st = combine_to(GPU(1), vector_subtract, x, y, &ret[1], err);
    if (st == TENREC_OK)
        st = combine_to(GPU(2), vector_multiply, x, y, &ret[2], err);
    if (st == TENREC_OK)
        st = tenrec_tensor_to(x, GPU(3), &ret[3], err);
    return return_list(c, ret, 4, st, err);
}

static tenrec_status add_to_gpu(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *x, *y, *z = NULL;
    tenrec_status st = two(c, &x, &y, err);

    (void)arg;
    if (st == TENREC_OK)
        st = combine_to(GPU(0), vector_add, x, y, &z, err);
    return st == TENREC_OK ? return_tensor(c, z, err) : st;
}

static tenrec_status add_one(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *x, *one, *z = NULL;
    tenrec_status st = tenrec_call_get_args(c, err, "t", &x);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    one = vector_on(tenrec_tensor_desc(x)->device, (int64_t)tenrec_tensor_count(x), 1);
    st = vector_add(x, one, &z, err);
    tenrec_tensor_drop(one);
    return st == TENREC_OK ? return_tensor(c, z, err) : st;
}

static tenrec_status gpu_add_wrong(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *x, *y, *here = NULL, *z = NULL;
    tenrec_status st = two(c, &x, &y, err);

    (void)arg;
    if (st == TENREC_OK && (index_of(x) < 0 || index_of(y) < 0))
        st = wrong_devices(err);
    if (st == TENREC_OK)
        st = tenrec_tensor_to(x, CPU, &here, err);
    if (st == TENREC_OK)
        st = vector_add(here, y, &z, err);
    tenrec_tensor_drop(here);
    return st == TENREC_OK ? return_tensor(c, z, err) : st;
}

/* ---- streams ----------------------------------------------------------------------------- */

static void join(const struct tenrec_stream *first, const struct tenrec_stream *then)
{
    tenrec_error err;

    if (tenrec_stream_order(first, then, &err) != TENREC_OK)
        abort();
}

static tenrec_status add_slowly(struct tenrec_tensor *x, struct tenrec_tensor *y,
                                struct tenrec_tensor **ret, tenrec_error *err)
{
    const struct tenrec_device device = tenrec_tensor_desc(x)->device;
    const struct tenrec_stream s0 = device_switch(device);
    const struct tenrec_stream s1 = { device, tenrec_stream_get_current(device) };
    tenrec_status st;

    join(&s0, &s1);
    tenrec_tensor_record_stream(x, &s1);
    tenrec_tensor_record_stream(y, &s1);
    device_delay(device);
    st = vector_add(x, y, ret, err);
    device_switch_back(&s0);
    join(&s1, &s0);
    if (st == TENREC_OK)
        tenrec_tensor_record_stream(*ret, &s0);
    return st;
}

static tenrec_status slow_add(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *x, *y, *z = NULL;
    tenrec_status st = two(c, &x, &y, err);

    (void)arg;
    if (st == TENREC_OK)
        st = add_slowly(x, y, &z, err);
    return st == TENREC_OK ? return_tensor(c, z, err) : st;
}

static tenrec_status nested_slow_add(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    size_t n;
    const struct tenrec_value *args = tenrec_call_args(c, &n);
    struct tenrec_tensor *x, *y, *z, *sum = NULL;
    struct tenrec_value *got = NULL;
    const char *to;
    tenrec_status st = tenrec_value_unpack(args, n, err, "sttt", &to, &x, &y, &z);

    (void)arg;
    if (st == TENREC_OK)
        st = tenrec_rpc_sync(tenrec_call_worker(c), to, "slow_add", args + 1, 2, NULL, &got, err);
    if (st == TENREC_OK)
        st = add_slowly(got->u.tensor, z, &sum, err);
    tenrec_value_drop(got);
    return st == TENREC_OK ? return_tensor(c, sum, err) : st;
}

static void drop_view(void *arg, void *data)
{
    (void)data;
    tenrec_tensor_drop(arg);
}

static tenrec_status tensor_view(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    const int64_t shape[] = { 1000, 200 };
    struct tenrec_tensor *whole = NULL, *view = NULL;
    struct tenrec_tensor_desc d;
    int64_t i;
    tenrec_status st = tenrec_call_get_args(c, err, "i", &i);

    (void)arg;
    if (st == TENREC_OK)
        st = tensors_new_on(GPU(0), TENREC_FLOAT32, 2, shape, &whole, err);
    if (st != TENREC_OK)
        return st;
    device_delay(GPU(0));
    vector_fill(whole, (float)i);
    d = *tenrec_tensor_desc(whole);
    d.shape[0] = 100;
    st = tenrec_tensor_from_desc(&d, drop_view, whole, &view, err);
    if (st == TENREC_OK)
        return return_tensor(c, view, err);
    tenrec_tensor_drop(whole);
    return st;
}

/* ---- references ----------------------------------------------------------------------------- */

static tenrec_status make_model(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    int64_t device;
    tenrec_status st = tenrec_call_get_args(c, err, "i", &device);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    device_delay(device_of(device));
    return return_tensor(c, vector_on(device_of(device), 64, 2), err);
}

static tenrec_status forward(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *model, *x = NULL, *z = NULL;
    struct tenrec_value *got = NULL;
    const struct tenrec_value *given;
    tenrec_status st = tenrec_call_get_args(c, err, "tv", &model, &given);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    if (given->type == TENREC_VALUE_RREF) {
        st = tenrec_rref_to_here(given->u.rref, NULL, &got, err);
        x = st == TENREC_OK ? got->u.tensor : NULL;
    } else {
        x = given->u.tensor;
    }
    if (st == TENREC_OK) {
        device_delay(tenrec_tensor_desc(model)->device);
        st = vector_multiply(model, x, &z, err);
    }
    tenrec_value_drop(got);
    return st == TENREC_OK ? return_tensor(c, z, err) : st;
}

static tenrec_status sum_of(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *x, *here = NULL;
    struct tenrec_value sum = tenrec_value_double(0);
    tenrec_status st = tenrec_call_get_args(c, err, "t", &x);

    (void)arg;
    if (st == TENREC_OK)
        st = tenrec_tensor_to(x, CPU, &here, err);
    for (uint64_t i = 0; st == TENREC_OK && i < tenrec_tensor_count(here); i++)
        sum.u.number += (double)((const float *)tenrec_tensor_data(here))[i];
    tenrec_tensor_drop(here);
    return st == TENREC_OK ? tenrec_call_return(c, &sum, err) : st;
}

static tenrec_status relay(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_value *got = NULL;
    struct tenrec_rref *r;
    tenrec_status st = tenrec_call_get_args(c, err, "r", &r);

    (void)arg;
    if (st == TENREC_OK)
        st = tenrec_rref_to_here(r, NULL, &got, err);
    if (st == TENREC_OK)
        st = tenrec_call_return(c, got, err);
    tenrec_value_drop(got);
    return st;
}

/* ---- later ------------------------------------------------------------------------------------
 */

/* A call that a future answers. */
struct later {
    struct tenrec_call *call;
    struct tenrec_tensor *z; /* shared; NULL: none */
};

static void answer(struct tenrec_future *f, void *arg)
{
    struct later *l = arg;
    const struct tenrec_value *v = tenrec_future_value(f);
    struct tenrec_tensor *sum = NULL;
    struct tenrec_value tensor;
    tenrec_error why;
    tenrec_status st = v ? TENREC_OK : TENREC_EREMOTE;

    if (!v)
        why = *tenrec_future_error(f);
    if (st == TENREC_OK && l->z) {
        device_delay(tenrec_tensor_desc(l->z)->device);
        st = vector_add(v->u.tensor, l->z, &sum, &why);
        tensor = tenrec_value_tensor(sum);
        v = &tensor;
    }
    if (st == TENREC_OK)
        st = tenrec_call_return(l->call, v, &why);
    tenrec_call_finish(l->call, st == TENREC_OK ? NULL : &why);
    tenrec_tensor_drop(sum);
    tenrec_tensor_drop(l->z);
    free(l);
}

static struct later *later_new(struct tenrec_call *c, struct tenrec_tensor *z)
{
    struct later *l = malloc(sizeof *l);

    *l = (struct later){ c, z ? tenrec_tensor_share(z) : NULL };
    return l;
}

/* The future is completed on another stream than the call's. */
static tenrec_status sleep_and_set_to_one(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    size_t n;
    const struct tenrec_value *args = tenrec_call_args(c, &n);
    struct tenrec_stream s0, s1;
    struct tenrec_future *f = NULL;
    struct tenrec_tensor *x;
    tenrec_status st = tenrec_value_unpack(args, n, err, "t", &x);

    (void)arg;
    if (st == TENREC_OK)
        st = tenrec_future_new_on(&tenrec_tensor_desc(x)->device, 1, &f, err);
    if (st == TENREC_OK)
        st = tenrec_future_add_callback(f, answer, later_new(c, NULL), err);
    if (st != TENREC_OK)
        return st;
    s0 = device_switch(tenrec_tensor_desc(x)->device);
    s1 = (struct tenrec_stream){ s0.device, tenrec_stream_get_current(s0.device) };
    join(&s0, &s1);
    tenrec_tensor_record_stream(x, &s1);
    device_delay(s0.device);
    vector_fill(x, 1);
    st = tenrec_future_set_value(f, &args[0], err);
    device_switch_back(&s0);
    tenrec_future_drop(f);
    return st;
}

static tenrec_status async_nested_add(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    size_t n;
    const struct tenrec_value *args = tenrec_call_args(c, &n);
    struct tenrec_tensor *x, *y, *z;
    struct tenrec_future *f = NULL;
    const char *to;
    tenrec_status st = tenrec_value_unpack(args, n, err, "sttt", &to, &x, &y, &z);

    (void)arg;
    if (st == TENREC_OK)
        st = tenrec_rpc_async(tenrec_call_worker(c), to, "add", args + 1, 2, NULL, &f, err);
    if (st != TENREC_OK)
        return st;
    st = tenrec_future_add_callback(f, answer, later_new(c, z), err);
    tenrec_future_drop(f);
    return st;
}

/* ---- objects
 * ------------------------------------------------------------------------------------- */

static void wrapper_free(void *data, void *arg)
{
    (void)arg;
    tenrec_tensor_drop(data);
}

/* It does not travel: nothing says how. */
static const struct tenrec_object_type wrapper = { .size = sizeof wrapper,
                                                   .name = "wrapper",
                                                   .free_fn = wrapper_free };

static tenrec_status make_object(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_object *o = NULL;
    struct tenrec_value v;
    struct tenrec_tensor *x;
    tenrec_status st = tenrec_call_get_args(c, err, "t", &x);

    (void)arg;
    if (st == TENREC_OK)
        st = tenrec_object_new(&wrapper, tenrec_tensor_share(x), &o, err);
    if (st != TENREC_OK)
        return st;
    v = tenrec_value_object(o);
    st = tenrec_call_return(c, &v, err);
    tenrec_object_drop(o);
    return st;
}

static tenrec_status object_increase(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    size_t n;
    const struct tenrec_value *args = tenrec_call_args(c, &n);
    struct tenrec_tensor *one, *sum = NULL;
    tenrec_status st;
    void *data;

    (void)arg;
    st = tenrec_object_get(&args[0], &wrapper, &data, err);
    if (st != TENREC_OK)
        return st;
    one = vector_on(tenrec_tensor_desc(data)->device, (int64_t)tenrec_tensor_count(data), 1);
    st = vector_add(data, one, &sum, err);
    if (st == TENREC_OK) { /* done when the next call looks: calls are in no order */
        vector_put(data, sum);
        st = tenrec_stream_wait(
            &(struct tenrec_stream){ tenrec_tensor_desc(sum)->device,
                                     tenrec_stream_get_current(tenrec_tensor_desc(sum)->device) },
            err);
    }
    tenrec_tensor_drop(one);
    tenrec_tensor_drop(sum);
    return st;
}

static tenrec_status object_sum(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    size_t n;
    const struct tenrec_value *args = tenrec_call_args(c, &n);
    struct tenrec_value sum = tenrec_value_double(0);
    struct tenrec_tensor *here = NULL;
    tenrec_status st;
    void *data;

    (void)arg;
    st = tenrec_object_get(&args[0], &wrapper, &data, err);
    if (st == TENREC_OK)
        st = tenrec_tensor_to(data, CPU, &here, err);
    for (uint64_t i = 0; st == TENREC_OK && i < tenrec_tensor_count(here); i++)
        sum.u.number += (double)((const float *)tenrec_tensor_data(here))[i];
    tenrec_tensor_drop(here);
    return st == TENREC_OK ? tenrec_call_return(c, &sum, err) : st;
}

tenrec_status device_functions_setup(struct tenrec_worker *w, int32_t rank, void *arg,
                                     tenrec_error *err)
{
    static const struct {
        const char *name;
        tenrec_function_fn *fn;
        uint32_t flags;
    } all[] = {
        { "add", add, TENREC_POOL },
        { "gpu_add", gpu_add, TENREC_POOL },
        { "gpu_add_given", gpu_add_given, TENREC_POOL },
        { "gpu_add_multi", gpu_add_multi, TENREC_POOL },
        { "add_return_to_gpus", add_return_to_gpus, TENREC_POOL },
        { "add_to_gpu", add_to_gpu, TENREC_POOL },
        { "add_one", add_one, TENREC_POOL },
        { "slow_add", slow_add, TENREC_POOL },
        { "nested_slow_add", nested_slow_add, TENREC_POOL },
        { "gpu_add_wrong", gpu_add_wrong, TENREC_POOL },
        { "tensor_view", tensor_view, TENREC_POOL },
        { "make_model", make_model, TENREC_POOL },
        { "forward", forward, TENREC_POOL },
        { "sum_of", sum_of, TENREC_POOL },
        { "relay", relay, TENREC_POOL },
        { "sleep_and_set_to_one", sleep_and_set_to_one, TENREC_LATER },
        { "async_nested_add", async_nested_add, TENREC_LATER },
        { "make_object", make_object, TENREC_POOL },
        { "object_increase", object_increase, TENREC_POOL },
        { "object_sum", object_sum, TENREC_POOL },
    };
    tenrec_status st = TENREC_OK;

    (void)rank, (void)arg;
    for (size_t i = 0; i < sizeof all / sizeof all[0] && st == TENREC_OK; i++)
        st = tenrec_worker_register_function(w, all[i].name, all[i].fn, NULL, all[i].flags, err);
    return st;
}
