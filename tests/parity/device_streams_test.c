/* SPDX-License-Identifier: Apache-2.0 */
/* device_streams_test.c - nothing waits, and all is in order: groups CU-D, CU-F and
 * CU-G of docs/internals/parity.md. Work on devices is late, so what is not ordered is wrong. */
#include "device_functions.h"
#include "device_worker.h"
#include "own.h"

enum { N = 64 };

static struct tenrec_future *call(struct tenrec_worker *w, const char *to, const char *function,
                                  const struct tenrec_value *args, size_t n)
{
    struct tenrec_future *f = NULL;
    tenrec_error err;

    assert_status(tenrec_rpc_async(w, to, function, args, n, NULL, &f, &err), &err);
    return f;
}

/* Waits on another stream than the default one, and looks there. */
static void expect(struct tenrec_future *f, struct tenrec_device device, float x)
{
    struct tenrec_stream former = device_switch(device);
    tenrec_error err;

    assert_status(tenrec_future_wait(f, tenrec_test_stretch_ms(LONG_MS), &err), &err);
    assert_vector_value(tenrec_future_value(f), device, x);
    device_switch_back(&former);
    tenrec_future_drop(f);
}

/* ---- CU-D ------------------------------------------------------------------------------ */

/* test_custom_stream */
static tenrec_status custom_stream(const struct tenrec_test *t, tenrec_error *err)
{
    const struct device_way map = { next_worker(t, 1), GPU(0), GPU(1) };
    struct tenrec_worker *w = device_worker(t, &map, 1, NULL, 0);
    struct tenrec_tensor *x = vector_on(GPU(0), N, 1);
    const struct tenrec_value args[] = { tenrec_value_tensor(x), tenrec_value_tensor(x) };
    struct tenrec_value *got = NULL;

    assert_status(tenrec_rpc_sync(w, map.to, "slow_add", args, 2, NULL, &got, err), err);
    assert_vector_value(got, GPU(0), 2);
    tenrec_value_drop(got);
    tenrec_tensor_drop(x);
    leave_and_drop(w);
    return TENREC_OK;
}

/* test_custom_stream_multi */
static tenrec_status custom_stream_multi(const struct tenrec_test *t, tenrec_error *err)
{
    enum { CALLS = 20 };
    const struct device_way map = { next_worker(t, 1), GPU(0), GPU(1) };
    struct tenrec_worker *w = device_worker(t, &map, 1, NULL, 0);
    struct tenrec_future *f[CALLS];

    (void)err;
    for (int i = 0; i < CALLS; i++) {
        struct tenrec_tensor *x = vector_on(GPU(0), N, (float)i);
        const struct tenrec_value args[] = { tenrec_value_tensor(x), tenrec_value_tensor(x) };
        f[i] = call(w, map.to, "slow_add", args, 2);
        tenrec_tensor_drop(x);
    }
    for (int i = 0; i < CALLS; i++)
        expect(f[i], GPU(0), 2 * (float)i);
    leave_and_drop(w);
    return TENREC_OK;
}

static struct tenrec_worker *start_nested(const struct tenrec_test *t)
{
    const struct device_way map[] = { { next_worker(t, 1), GPU(0), GPU(1) },
                                      { next_worker(t, 1), GPU(1), GPU(0) } };

    return device_worker(t, map, 2, NULL, 0);
}

static struct tenrec_future *call_nested(const struct tenrec_test *t, struct tenrec_worker *w,
                                         const char *function, float x, float y, float z)
{
    struct tenrec_tensor *v[] = { vector_on(GPU(0), N, x), vector_on(GPU(0), N, y),
                                  vector_on(GPU(0), N, z) };
    const struct tenrec_value args[] = { tenrec_value_text(next_worker(t, 2)),
                                         tenrec_value_tensor(v[0]), tenrec_value_tensor(v[1]),
                                         tenrec_value_tensor(v[2]) };
    struct tenrec_future *f = call(w, next_worker(t, 1), function, args, 4);

    for (int i = 0; i < 3; i++)
        tenrec_tensor_drop(v[i]);
    return f;
}

/* test_custom_stream_nested */
static tenrec_status custom_stream_nested(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_worker *w = start_nested(t);

    (void)err;
    expect(call_nested(t, w, "nested_slow_add", 1, 2, 3), GPU(0), 6);
    leave_and_drop(w);
    return TENREC_OK;
}

/* test_custom_stream_nested_multi */
static tenrec_status custom_stream_nested_multi(const struct tenrec_test *t, tenrec_error *err)
{
    enum { CALLS = 5 };
    struct tenrec_worker *w = start_nested(t);
    struct tenrec_future *f[CALLS];

    (void)err;
    for (int i = 0; i < CALLS && t->rank == 0; i++)
        f[i] = call_nested(t, w, "nested_slow_add", (float)(i - 1), (float)i, (float)(i + 1));
    for (int i = 0; i < CALLS && t->rank == 0; i++)
        expect(f[i], GPU(0), 3 * (float)i);
    leave_and_drop(w);
    return TENREC_OK;
}

/* ---- CU-F -------------------------------------------------------------------------------- */

static struct tenrec_rref *make_model(struct tenrec_worker *w, const char *to,
                                      struct tenrec_device device)
{
    const struct tenrec_value arg = tenrec_value_int(device.index);
    struct tenrec_rref *r = NULL;
    tenrec_error err;

    assert_status(tenrec_remote(w, to, "make_model", &arg, 1, NULL, &r, &err), &err);
    return r;
}

/* model.remote().forward(x).to_here() and model.rpc_sync().forward(x): both 2 * x. */
static void forward_both(struct tenrec_rref *model, const struct tenrec_value *x,
                         struct tenrec_device here, float value)
{
    struct tenrec_rref *out = NULL;
    struct tenrec_value *got = NULL;
    tenrec_error err;

    assert_status(tenrec_rref_remote(model, "forward", x, 1, NULL, &out, &err), &err);
    assert_status(tenrec_rref_to_here(out, NULL, &got, &err), &err);
    assert_vector_value(got, here, 2 * value);
    tenrec_value_drop(got);
    tenrec_rref_drop(out);
    assert_status(tenrec_rref_rpc_sync(model, "forward", x, 1, NULL, &got, &err), &err);
    assert_vector_value(got, here, 2 * value);
    tenrec_value_drop(got);
}

static tenrec_status to_here(const struct tenrec_test *t, int local, int remote)
{
    const struct device_way map = { next_worker(t, 1), GPU(local), GPU(remote) };
    struct tenrec_worker *w = device_worker(t, &map, 1, NULL, 0);

    if (t->rank == 1) {
        struct tenrec_rref *model = make_model(w, map.to, GPU(remote));

        for (int i = 0; i < 10; i++) {
            struct tenrec_tensor *x = vector_on(GPU(local), N, (float)i);
            const struct tenrec_value v = tenrec_value_tensor(x);

            forward_both(model, &v, GPU(local), (float)i);
            tenrec_tensor_drop(x);
        }
        tenrec_rref_drop(model);
    }
    leave_and_drop(w);
    return TENREC_OK;
}

static tenrec_status as_arg(const struct tenrec_test *t, int local, int remote, bool listed)
{
    const struct device_way map[] = { { next_worker(t, 1), GPU(local), GPU(remote) },
                                      { next_worker(t, 3), GPU(remote), GPU(local) } };
    struct tenrec_worker *w = device_worker(t, map, 2, &GPU(0), listed);

    if (t->rank == 1) {
        struct tenrec_rref *model = make_model(w, map[0].to, GPU(remote));
        tenrec_error err;

        for (int i = 0; i < 10; i++) {
            struct tenrec_tensor *x = vector_on(GPU(local), N, (float)i);
            const struct tenrec_value v = tenrec_value_tensor(x);
            struct tenrec_rref *r = NULL;
            struct tenrec_value arg;

            assert_status(tenrec_rref_new(w, &v, &r, &err), &err);
            arg = tenrec_value_rref(r);
            forward_both(model, &arg, GPU(local), (float)i);
            tenrec_rref_drop(r);
            tenrec_tensor_drop(x);
        }
        tenrec_rref_drop(model);
    }
    leave_and_drop(w);
    return TENREC_OK;
}

/* The output goes to a third worker, which fetches it and hands it on. */
static tenrec_status relayed(const struct tenrec_test *t, int local, int remote)
{
    const struct device_way map[][2] = {
        { { "worker1", GPU(local), GPU(remote) }, { "worker2", GPU(local), GPU(local) } },
        { { "worker0", GPU(remote), GPU(local) } },
        { { "worker1", GPU(local), GPU(remote) } },
    };
    static const size_t n[] = { 2, 1, 1, 0 };
    struct tenrec_worker *w = device_worker(t, map[t->rank % 3], n[t->rank], NULL, 0);

    if (t->rank == 0) {
        struct tenrec_rref *model = make_model(w, "worker1", GPU(remote));
        tenrec_error err;

        for (int i = 0; i < 10; i++) {
            struct tenrec_tensor *x = vector_on(GPU(local), N, (float)i);
            const struct tenrec_value v = tenrec_value_tensor(x);
            struct tenrec_rref *in = NULL, *out = NULL, *relay = NULL;
            struct tenrec_value arg, *got = NULL;

            assert_status(tenrec_rref_new(w, &v, &in, &err), &err);
            arg = tenrec_value_rref(in);
            assert_status(tenrec_rref_remote(model, "forward", &arg, 1, NULL, &out, &err), &err);
            arg = tenrec_value_rref(out);
            assert_status(tenrec_remote(w, "worker2", "relay", &arg, 1, NULL, &relay, &err), &err);
            assert_status(tenrec_rref_to_here(relay, NULL, &got, &err), &err);
            assert_vector_value(got, GPU(local), 2 * (float)i);
            tenrec_value_drop(got);
            tenrec_rref_drop(relay);
            tenrec_rref_drop(out);
            tenrec_rref_drop(in);
            tenrec_tensor_drop(x);
        }
        tenrec_rref_drop(model);
    }
    leave_and_drop(w);
    return TENREC_OK;
}

/* One worker, which owns everything itself. */
static tenrec_status owner(const struct tenrec_test *t, int local, int remote)
{
    const struct device_way map = { "worker0", GPU(local), GPU(remote) };
    struct tenrec_worker *w = device_worker(t, &map, 1, NULL, 0);
    struct tenrec_rref *model = make_model(w, "worker0", GPU(remote));
    tenrec_error err;

    for (int i = 0; i < 30; i++) {
        struct tenrec_tensor *x = vector_on(GPU(local), N, (float)i);
        struct tenrec_value v = tenrec_value_tensor(x), *out = NULL, *sum = NULL;
        struct tenrec_rref *r = NULL, *summed = NULL;

        assert_status(tenrec_rref_rpc_sync(model, "forward", &v, 1, NULL, &out, &err), &err);
        assert_status(tenrec_rref_new(w, out, &r, &err), &err);
        assert_status(tenrec_rref_remote(r, "sum_of", NULL, 0, NULL, &summed, &err), &err);
        assert_status(tenrec_rref_to_here(summed, NULL, &sum, &err), &err);
        assert_true(sum->u.number == 2.0 * i * N);
        assert_vector_value(out, GPU(local), 2 * (float)i);
        tenrec_value_drop(sum);
        tenrec_value_drop(out);
        tenrec_rref_drop(summed);
        tenrec_rref_drop(r);
        tenrec_tensor_drop(x);
    }
    tenrec_rref_drop(model);
    leave_and_drop(w);
    return TENREC_OK;
}

#define BODY(name, call)                                                                           \
    static tenrec_status name(const struct tenrec_test *t, tenrec_error *err)                      \
    {                                                                                              \
        (void)err;                                                                                 \
        return call;                                                                               \
    }

/* clang-format off */
BODY(rref_to_here_synchronization1, to_here(t, 0, 0))
BODY(rref_to_here_synchronization2, to_here(t, 1, 0))
BODY(rref_to_here_synchronization3, to_here(t, 1, 1))
BODY(rref_to_here_synchronization4, to_here(t, 0, 1))
BODY(rref_as_arg_synchronization1, as_arg(t, 0, 0, false))
BODY(rref_as_arg_synchronization2, as_arg(t, 1, 0, false))
BODY(rref_as_arg_synchronization3, as_arg(t, 1, 1, false))
BODY(rref_as_arg_synchronization4, as_arg(t, 0, 1, false))
BODY(rref_as_arg_synchronization5, as_arg(t, 0, 0, true))
BODY(rref_forward_synchronization1, relayed(t, 0, 0))
BODY(rref_forward_synchronization2, relayed(t, 0, 1))
BODY(rref_forward_synchronization3, relayed(t, 1, 0))
BODY(rref_forward_synchronization4, relayed(t, 1, 1))
BODY(owner_rref_forward_synchronization1, owner(t, 0, 0))
BODY(owner_rref_forward_synchronization2, owner(t, 0, 1))
BODY(owner_rref_forward_synchronization3, owner(t, 1, 0))
BODY(owner_rref_forward_synchronization4, owner(t, 1, 1))
/* clang-format on */

/* ---- CU-G ------------------------------------------------------------------------------------ */

/* test_tensor_view_as_return_value */
static tenrec_status tensor_view_as_return_value(const struct tenrec_test *t, tenrec_error *err)
{
    const struct device_way map = { next_worker(t, 1), GPU(0), GPU(0) };
    struct tenrec_worker *w = device_worker(t, &map, 1, NULL, 0);
    struct tenrec_future *f[5];

    (void)err;
    for (int i = 0; i < 5; i++) {
        const struct tenrec_value arg = tenrec_value_int(i);
        f[i] = call(w, map.to, "tensor_view", &arg, 1);
    }
    for (int i = 0; i < 5; i++)
        expect(f[i], GPU(0), (float)i);
    leave_and_drop(w);
    return TENREC_OK;
}

/* test_rref_with_unpickleable_attributes */
static tenrec_status rref_of_an_object_with_a_tensor(const struct tenrec_test *t, tenrec_error *err)
{
    const struct device_way map = { next_worker(t, 1), GPU(0), GPU(0) };
    struct tenrec_worker *w = device_worker(t, &map, 1, NULL, 0);
    struct tenrec_tensor *x = vector_on(GPU(0), 42, 0);
    const struct tenrec_value v = tenrec_value_tensor(x);
    struct tenrec_rref *r = NULL;
    struct tenrec_value *sum = NULL;

    assert_status(tenrec_remote(w, map.to, "make_object", &v, 1, NULL, &r, err), err);
    assert_status(tenrec_rref_rpc_sync(r, "object_increase", NULL, 0, NULL, NULL, err), err);
    assert_status(tenrec_rref_rpc_sync(r, "object_sum", NULL, 0, NULL, &sum, err), err);
    assert_true(sum->u.number == 42);
    tenrec_value_drop(sum);
    tenrec_rref_drop(r);
    tenrec_tensor_drop(x);
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
#define ALONE(test)                                                                                \
    {                                                                                              \
#test, test,                                                                               \
        {                                                                                          \
            .flags = TENREC_TEST_NO_RPC, .world_size = 1                                           \
        }                                                                                          \
    }

int main(int argc, char **argv)
{
    static const struct parity_case cases[] = {
        CASE(custom_stream),
        CASE(custom_stream_multi),
        CASE(custom_stream_nested),
        CASE(custom_stream_nested_multi),
        CASE(rref_to_here_synchronization1),
        CASE(rref_to_here_synchronization2),
        CASE(rref_to_here_synchronization3),
        CASE(rref_to_here_synchronization4),
        CASE(rref_as_arg_synchronization1),
        CASE(rref_as_arg_synchronization2),
        CASE(rref_as_arg_synchronization3),
        CASE(rref_as_arg_synchronization4),
        CASE(rref_as_arg_synchronization5),
        CASE(rref_forward_synchronization1),
        CASE(rref_forward_synchronization2),
        CASE(rref_forward_synchronization3),
        CASE(rref_forward_synchronization4),
        ALONE(owner_rref_forward_synchronization1),
        ALONE(owner_rref_forward_synchronization2),
        ALONE(owner_rref_forward_synchronization3),
        ALONE(owner_rref_forward_synchronization4),
        CASE(tensor_view_as_return_value),
        CASE(rref_of_an_object_with_a_tensor),
    };

    return parity_run(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
