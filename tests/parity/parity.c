/* SPDX-License-Identifier: Apache-2.0 */
#include "parity.h"

#include "parity_functions.h"

static const char *const config = "worker: { rpc_timeout: 60s }\n"
                                  "backends:\n"
                                  "  tensorpipe: { plugin: tensorpipe }\n"
                                  "  inproc: { plugin: inproc, options: { devices: 4 } }\n"
                                  "  ucx: { plugin: ucx }\n"
                                  "backend: tensorpipe\n";

static const char *backend = "tensorpipe";
static uint32_t mode = TENREC_TEST_THREADS;

static void run_case(void **state)
{
    const struct parity_case *c = *state;
    struct tenrec_test_options o = c->o;
    tenrec_error err;

    o.size = sizeof o;
    o.body = c->body;
    if (!o.config_text && !o.config)
        o.config_text = config;
    if (!o.backend)
        o.backend = backend;
    if (mode == TENREC_TEST_PROCESSES) {
        o.mode = mode;
        o.flags |= TENREC_TEST_IGNORE_LEAKS; /* threads of the driver, and its files */
    }
    if (!o.setup)
        o.setup = functions_setup;
    functions_reset();
    tenrec_test_assert_ok(tenrec_test_dist_init(&o, &err), &err);
}

int parity_run(int argc, char **argv, const struct parity_case *cases, size_t n)
{
    struct CMUnitTest *tests = calloc(n, sizeof *tests);
    int failed;

    if (!tests)
        return 1;
    if (argc > 1)
        backend = argv[1];
    if (argc > 2 && strcmp(argv[2], "processes") == 0)
        mode = TENREC_TEST_PROCESSES;
    for (size_t i = 0; i < n; i++)
        tests[i] = (struct CMUnitTest){ cases[i].name, run_case, NULL, NULL,
                                        (void *)(uintptr_t)&cases[i] };
    failed = _cmocka_run_group_tests("parity", tests, n, NULL, NULL);
    free(tests);
    return failed;
}

const char *next_worker(const struct tenrec_test *t, int k)
{
    static _Thread_local char names[4][TENREC_NAME_MAX + 1];
    static _Thread_local unsigned n;

    return tenrec_test_worker_name((t->rank + k) % t->world_size, names[n++ % 4]);
}

struct tenrec_value *ask(const struct tenrec_test *t, const char *to, const char *function,
                         const struct tenrec_value *args, size_t n)
{
    struct tenrec_value *got = NULL;
    tenrec_error err;

    assert_status(tenrec_rpc_sync(t->worker, to, function, args, n, NULL, &got, &err), &err);
    return got;
}

struct tenrec_future *ask_async(const struct tenrec_test *t, const char *to, const char *function,
                                const struct tenrec_value *args, size_t n)
{
    struct tenrec_future *f = NULL;
    tenrec_error err;

    assert_status(tenrec_rpc_async(t->worker, to, function, args, n, NULL, &f, &err), &err);
    return f;
}

void ask_fails(const struct tenrec_test *t, const char *to, const char *function, int64_t ms,
               tenrec_status code, tenrec_error *ret)
{
    struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = ms };

    assert_int_equal(tenrec_rpc_sync(t->worker, to, function, NULL, 0, &o, NULL, ret), code);
}

struct tenrec_future *ask_async_within(const struct tenrec_test *t, const char *to,
                                       const char *function, int64_t ms)
{
    struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = ms };
    struct tenrec_future *f = NULL;
    tenrec_error err;

    assert_status(tenrec_rpc_async(t->worker, to, function, NULL, 0, &o, &f, &err), &err);
    return f;
}

void wait_ok(struct tenrec_future *f)
{
    tenrec_error err;

    assert_status(tenrec_future_wait(f, tenrec_test_stretch_ms(LONG_MS), &err), &err);
}

void wait_fails(struct tenrec_future *f, tenrec_status code, tenrec_error *ret)
{
    assert_int_equal(tenrec_future_wait(f, tenrec_test_stretch_ms(LONG_MS), ret), code);
}

int64_t take_int(struct tenrec_value *v)
{
    int64_t i;

    assert_int_equal(v->type, TENREC_VALUE_INT);
    i = v->u.integer;
    tenrec_value_drop(v);
    return i;
}

int64_t future_int(struct tenrec_future *f)
{
    const struct tenrec_value *v;

    wait_ok(f);
    v = tenrec_future_value(f);
    assert_int_equal(v->type, TENREC_VALUE_INT);
    return v->u.integer;
}

struct tenrec_tensor *filled(int64_t n, float x)
{
    struct tenrec_tensor *t = NULL;
    const int64_t shape[] = { n, n };

    assert_int_equal(tenrec_tensor_new(TENREC_FLOAT32, 2, shape, &t, NULL), TENREC_OK);
    for (int64_t i = 0; i < n * n; i++)
        ((float *)tenrec_tensor_data(t))[i] = x;
    return t;
}

bool is_filled(const struct tenrec_value *v, int64_t n, float x)
{
    const struct tenrec_tensor_desc *d;

    if (v->type != TENREC_VALUE_TENSOR)
        return false;
    d = tenrec_tensor_desc(v->u.tensor);
    if (d->ndim != 2 || d->shape[0] != n || d->shape[1] != n)
        return false;
    for (int64_t i = 0; i < n * n; i++)
        if (((const float *)tenrec_tensor_data(v->u.tensor))[i] != x)
            return false;
    return true;
}

void assert_filled(struct tenrec_value *take, int64_t n, float x)
{
    bool ok = is_filled(take, n, x);

    tenrec_value_drop(take);
    assert_true(ok);
}
