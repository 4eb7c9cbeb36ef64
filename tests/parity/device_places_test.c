/* SPDX-License-Identifier: Apache-2.0 */
/* device_places_test.c - tensors arrive where device maps say, and come back the
 * other way round: group CU-C of docs/internals/parity.md. */
#include "device_functions.h"
#include "device_worker.h"
#include "own.h"

enum { HOST = -1, NONE = -2 };

struct place {
    int x_from, y_from, z_to;
    int map[2][2]; /* from, to; NONE: no second pair */
    bool self;
};

static struct tenrec_device device_of(int i)
{
    return i == HOST ? CPU : GPU(i);
}

static struct tenrec_worker *make(const struct tenrec_test *t, const char *to, const int (*map)[2],
                                  size_t n)
{
    struct device_way way[4];
    size_t n_ways = 0;

    for (size_t i = 0; i < n; i++)
        if (map[i][0] != NONE)
            way[n_ways++] = (struct device_way){ to, device_of(map[i][0]), device_of(map[i][1]) };
    return device_worker(t, way, n_ways, NULL, 0);
}

static int mapped(const struct place *p, int from)
{
    for (int i = 0; i < 2; i++)
        if (p->map[i][0] == from)
            return p->map[i][1];
    return NONE;
}

static int mapped_back(const struct place *p, int to)
{
    for (int i = 0; i < 2; i++)
        if (p->map[i][0] != NONE && p->map[i][1] == to)
            return p->map[i][0];
    return NONE;
}

/* What upstream's _test_device_maps_gpu does. */
static tenrec_status add_at(const struct tenrec_test *t, const struct place *p)
{
    const char *to = next_worker(t, p->self ? 0 : 1);
    struct tenrec_worker *w = make(t, to, p->map, 2);
    struct tenrec_tensor *x = vector_on(device_of(p->x_from), 2, 0);
    struct tenrec_tensor *y = vector_on(device_of(p->y_from), 2, 1);
    const struct tenrec_value args[] = { tenrec_value_tensor(x), tenrec_value_tensor(y),
                                         tenrec_value_int(mapped(p, p->x_from)),
                                         tenrec_value_int(mapped(p, p->y_from)),
                                         tenrec_value_int(p->z_to) };
    struct tenrec_value *z = NULL;
    tenrec_error err;

    assert_status(tenrec_rpc_sync(w, to, "gpu_add_given", args, 5, NULL, &z, &err), &err);
    assert_vector_value(z, device_of(mapped_back(p, p->z_to)), 1);
    tenrec_value_drop(z);
    tenrec_tensor_drop(x);
    tenrec_tensor_drop(y);
    leave_and_drop(w);
    return TENREC_OK;
}

#define PLACE(name, ...)                                                                           \
    static tenrec_status name(const struct tenrec_test *t, tenrec_error *err)                      \
    {                                                                                              \
        static const struct place p = { __VA_ARGS__ };                                             \
                                                                                                   \
        (void)err;                                                                                 \
        return add_at(t, &p);                                                                      \
    }
#define ONE(from, to) .map = { { from, to }, { NONE, NONE } }
#define TWO(a, b, c, d) .map = { { a, b }, { c, d } }

/* clang-format off */
PLACE(device_map_cpu, HOST, HOST, HOST, ONE(HOST, HOST))
PLACE(device_map_cpu_to_gpu_default, HOST, HOST, 0, ONE(HOST, 0))
PLACE(device_map_cpu_to_gpu_non_default, HOST, HOST, 1, ONE(HOST, 1))
PLACE(device_map_gpu_to_cpu_default, 0, 0, HOST, ONE(0, HOST))
PLACE(device_map_gpu_to_cpu_non_default, 1, 1, HOST, ONE(1, HOST))
PLACE(device_map_gpu_default, 0, 0, 0, ONE(0, 0))
PLACE(device_map_gpu_non_default, 1, 1, 1, ONE(1, 1))
PLACE(device_map_gpu_default_to_non_default, 0, 0, 1, ONE(0, 1))
PLACE(device_map_gpu_non_default_to_default, 1, 1, 0, ONE(1, 0))
PLACE(device_map_gpu_mixed_1, 0, 1, 0, TWO(0, 0, 1, 1))
PLACE(device_map_gpu_mixed_2, 0, 1, 1, TWO(0, 0, 1, 1))
PLACE(device_map_gpu_mixed_3, 1, 0, 0, TWO(0, 0, 1, 1))
PLACE(device_map_gpu_mixed_4, 1, 0, 1, TWO(0, 0, 1, 1))
PLACE(device_map_gpu_mixed_5, 0, 1, 0, TWO(0, 1, 1, 0))
PLACE(device_map_gpu_mixed_6, 0, 1, 1, TWO(0, 1, 1, 0))
PLACE(device_map_gpu_mixed_7, 1, 0, 0, TWO(0, 1, 1, 0))
PLACE(device_map_gpu_mixed_8, 1, 0, 1, TWO(0, 1, 1, 0))
PLACE(device_map_gpu_mixed_self_1, 0, 1, 0, TWO(0, 0, 1, 1), .self = true)
PLACE(device_map_gpu_mixed_self_2, 0, 1, 1, TWO(0, 0, 1, 1), .self = true)
PLACE(device_map_gpu_mixed_self_3, 1, 0, 0, TWO(0, 0, 1, 1), .self = true)
PLACE(device_map_gpu_mixed_self_4, 1, 0, 1, TWO(0, 0, 1, 1), .self = true)
PLACE(device_map_gpu_mixed_self_5, 0, 1, 0, TWO(0, 1, 1, 0), .self = true)
PLACE(device_map_gpu_mixed_self_6, 0, 1, 1, TWO(0, 1, 1, 0), .self = true)
PLACE(device_map_gpu_mixed_self_7, 1, 0, 0, TWO(0, 1, 1, 0), .self = true)
PLACE(device_map_gpu_mixed_self_8, 1, 0, 1, TWO(0, 1, 1, 0), .self = true)
/* clang-format on */

/* Calls `function` with x on `x_from` (0) and y on `y_from` (1); the items of what comes
 * back must be on `device` and hold `value`. */
static void call_list(struct tenrec_worker *w, const char *to, const char *function, int x_from,
                      int y_from, const int *device, const float *value, size_t n)
{
    struct tenrec_tensor *x = vector_on(device_of(x_from), 2, 0);
    struct tenrec_tensor *y = vector_on(device_of(y_from), 2, 1);
    const struct tenrec_value args[] = { tenrec_value_tensor(x), tenrec_value_tensor(y) };
    struct tenrec_value *got = NULL;
    tenrec_error err;

    assert_status(tenrec_rpc_sync(w, to, function, args, 2, NULL, &got, &err), &err);
    if (n == 1 && got->type == TENREC_VALUE_TENSOR) {
        assert_vector_value(got, device_of(device[0]), value[0]);
    } else {
        assert_int_equal(got->n, n);
        for (size_t i = 0; i < n; i++)
            assert_vector_value(&got->u.array[i], device_of(device[i]), value[i]);
    }
    tenrec_value_drop(got);
    tenrec_tensor_drop(x);
    tenrec_tensor_drop(y);
}

/* test_device_maps_gpu */
static tenrec_status device_maps_gpu(const struct tenrec_test *t, tenrec_error *err)
{
    const int map[][2] = { { 0, 1 }, { 1, 0 } };
    struct tenrec_worker *w = make(t, next_worker(t, 1), map, 2);

    (void)err;
    call_list(w, next_worker(t, 1), "gpu_add", 0, 0, (const int[]){ 1 }, (const float[]){ 1 }, 1);
    leave_and_drop(w);
    return TENREC_OK;
}

static tenrec_status multi(const struct tenrec_test *t, const char *to)
{
    const int map[][2] = { { 0, 1 }, { 1, 0 } };
    struct tenrec_worker *w = make(t, to, map, 2);

    call_list(w, to, "gpu_add_multi", 0, 1, (const int[]){ 1, 0 }, (const float[]){ 1, -1 }, 2);
    leave_and_drop(w);
    return TENREC_OK;
}

static tenrec_status device_maps_multi_gpu(const struct tenrec_test *t, tenrec_error *err)
{
    (void)err;
    return multi(t, next_worker(t, 1));
}

static tenrec_status device_maps_multi_gpu_self(const struct tenrec_test *t, tenrec_error *err)
{
    (void)err;
    return multi(t, next_worker(t, 0));
}

/* test_device_maps_in_options: the configuration has them */
static tenrec_status device_maps_in_options(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_worker *w = NULL;
    char text[80];

    snprintf(text, sizeof text, "{%s: {cuda:0: cuda:1, cuda:1: cuda:0}}", next_worker(t, 1));
    assert_status(own_worker(t, device_functions_setup, "worker.device_maps", text, &w, err), err);
    assert_status(tenrec_init_rpc(w, err), err);
    devices_use(w);
    call_list(w, next_worker(t, 1), "gpu_add_multi", 0, 1, (const int[]){ 1, 0 },
              (const float[]){ 1, -1 }, 2);
    leave_and_drop(w);
    return TENREC_OK;
}

static tenrec_status return_to_gpus(const struct tenrec_test *t, const char *to)
{
    const int map[][2] = { { 0, 1 }, { 1, 2 }, { 2, 3 }, { 3, 0 } };
    struct tenrec_worker *w = make(t, to, map, 4);

    call_list(w, to, "add_return_to_gpus", HOST, HOST, (const int[]){ 3, 0, 1, 2 },
              (const float[]){ 1, -1, 0, 0 }, 4);
    leave_and_drop(w);
    return TENREC_OK;
}

static tenrec_status device_maps_return_to_gpu(const struct tenrec_test *t, tenrec_error *err)
{
    (void)err;
    return return_to_gpus(t, next_worker(t, 1));
}

static tenrec_status device_maps_return_to_gpu_self(const struct tenrec_test *t, tenrec_error *err)
{
    (void)err;
    return return_to_gpus(t, next_worker(t, 0));
}

/* test_device_maps_remote */
static tenrec_status device_maps_remote(const struct tenrec_test *t, tenrec_error *err)
{
    const int map[][2] = { { 1, 0 } };
    struct tenrec_worker *w = make(t, next_worker(t, 1), map, 1);
    struct tenrec_tensor *zero = vector_on(CPU, 2, 0), *one = vector_on(CPU, 2, 1);
    const struct tenrec_value args[] = { tenrec_value_tensor(zero), tenrec_value_tensor(one) };
    struct tenrec_rref *r = NULL;
    struct tenrec_value *got = NULL;

    assert_status(tenrec_remote(w, next_worker(t, 1), "add_to_gpu", args, 2, NULL, &r, err), err);
    for (int i = 0; i < 2; i++) {
        assert_status(tenrec_rref_to_here(r, NULL, &got, err), err);
        assert_vector_value(got, GPU(1), 1);
        tenrec_value_drop(got);
    }
    tenrec_rref_drop(r);
    tenrec_tensor_drop(zero);
    tenrec_tensor_drop(one);
    leave_and_drop(w);
    return TENREC_OK;
}

#define CASE(test)                                                                                 \
    {                                                                                              \
#test, test,                                                                               \
        {                                                                                          \
            .flags = TENREC_TEST_NO_RPC                                                            \
        }                                                                                          \
    }

int main(int argc, char **argv)
{
    static const struct parity_case cases[] = {
        CASE(device_map_cpu),
        CASE(device_map_cpu_to_gpu_default),
        CASE(device_map_cpu_to_gpu_non_default),
        CASE(device_map_gpu_to_cpu_default),
        CASE(device_map_gpu_to_cpu_non_default),
        CASE(device_map_gpu_default),
        CASE(device_map_gpu_non_default),
        CASE(device_map_gpu_default_to_non_default),
        CASE(device_map_gpu_non_default_to_default),
        CASE(device_map_gpu_mixed_1),
        CASE(device_map_gpu_mixed_2),
        CASE(device_map_gpu_mixed_3),
        CASE(device_map_gpu_mixed_4),
        CASE(device_map_gpu_mixed_5),
        CASE(device_map_gpu_mixed_6),
        CASE(device_map_gpu_mixed_7),
        CASE(device_map_gpu_mixed_8),
        CASE(device_map_gpu_mixed_self_1),
        CASE(device_map_gpu_mixed_self_2),
        CASE(device_map_gpu_mixed_self_3),
        CASE(device_map_gpu_mixed_self_4),
        CASE(device_map_gpu_mixed_self_5),
        CASE(device_map_gpu_mixed_self_6),
        CASE(device_map_gpu_mixed_self_7),
        CASE(device_map_gpu_mixed_self_8),
        CASE(device_maps_gpu),
        CASE(device_maps_multi_gpu),
        CASE(device_maps_multi_gpu_self),
        CASE(device_maps_in_options),
        CASE(device_maps_return_to_gpu),
        CASE(device_maps_return_to_gpu_self),
        CASE(device_maps_remote),
    };

    return parity_run(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
