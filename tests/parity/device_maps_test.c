/* SPDX-License-Identifier: Apache-2.0 */
/* device_maps_test.c - what device maps are refused, and what is not mapped: groups
 * CU-A, CU-B and CU-E of docs/internals/parity.md. */
#include "device_functions.h"
#include "devices.h"
#include "own.h"

/* ---- workers that the bodies make ----------------------------------------------------- */

static struct tenrec_worker *make(const struct tenrec_test *t)
{
    struct tenrec_worker *w = NULL;
    tenrec_error err;

    assert_status(own_worker(t, device_functions_setup, NULL, NULL, &w, &err), &err);
    return w;
}

static void map(struct tenrec_worker *w, const char *to, struct tenrec_device a,
                struct tenrec_device b)
{
    tenrec_error err;

    assert_status(
        tenrec_worker_set_device_map(w, to, &(struct tenrec_device_pair){ a, b }, 1, &err), &err);
}

/* All fail, with the same words about worker0. */
static tenrec_status is_refused(struct tenrec_worker *w, const char *first, const char *second)
{
    tenrec_error err;

    assert_int_equal(tenrec_init_rpc(w, &err), TENREC_EGROUP);
    assert_text_has(err.text, "of 'worker0'");
    assert_text_has(err.text, first);
    assert_text_has(err.text, second);
    assert_false(tenrec_worker_running(w));
    tenrec_worker_drop(w);
    return TENREC_OK;
}

/* ---- CU-A ------------------------------------------------------------------------------ */

/* test_device_maps_wrong_worker_name */
static tenrec_status map_for_nobody_is_refused(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_worker *w = make(t);

    (void)err;
    map(w, "none_exist", GPU(0), GPU(1));
    return is_refused(w, "'none_exist'", "no worker of the group");
}

/* test_device_maps_invalid_max_local_device */
static tenrec_status map_of_a_device_too_many_is_refused(const struct tenrec_test *t,
                                                         tenrec_error *err)
{
    struct tenrec_worker *w = make(t);

    (void)err;
    map(w, next_worker(t, 1), GPU(4), GPU(0));
    return is_refused(w, "the map for 'worker1'", "cuda:4 does not exist on 'worker0'");
}

/* test_device_maps_invalid_max_remote_device */
static tenrec_status map_to_a_device_too_many_is_refused(const struct tenrec_test *t,
                                                         tenrec_error *err)
{
    struct tenrec_worker *w = make(t);

    (void)err;
    map(w, next_worker(t, 1), GPU(0), GPU(4));
    return is_refused(w, "the map for 'worker1'", "cuda:4 does not exist on 'worker1'");
}

/* test_device_maps_many_to_one */
static tenrec_status map_of_two_devices_to_one_is_refused(const struct tenrec_test *t,
                                                          tenrec_error *err)
{
    struct tenrec_worker *w = make(t);

    (void)err;
    map(w, next_worker(t, 1), GPU(1), GPU(0));
    map(w, next_worker(t, 1), GPU(0), GPU(0));
    return is_refused(w, "the map for 'worker1'", "both go to cuda:0");
}

/* test_device_maps_one_to_many */
static tenrec_status second_target_of_a_device_is_refused(const struct tenrec_test *t,
                                                          tenrec_error *err)
{
    const struct tenrec_device_pair again = { GPU(0), GPU(0) };
    struct tenrec_worker *w = make(t);

    map(w, next_worker(t, 1), GPU(0), GPU(1));
    assert_int_equal(tenrec_worker_set_device_map(w, next_worker(t, 1), &again, 1, err),
                     TENREC_EINVAL);
    assert_text_has(err->text, "cuda:0 maps to cuda:1 already");
    tenrec_worker_drop(w);
    return TENREC_OK;
}

/* test_device_maps_invalid_min_device */
static tenrec_status negative_device_is_refused(const struct tenrec_test *t, tenrec_error *err)
{
    const struct tenrec_device_pair from = { GPU(-1), GPU(0) }, to = { GPU(0), GPU(-1) };
    struct tenrec_worker *w = make(t);

    assert_int_equal(tenrec_worker_set_device_map(w, next_worker(t, 1), &from, 1, err),
                     TENREC_EINVAL);
    assert_text_has(err->text, "may not be negative");
    assert_int_equal(tenrec_worker_set_device_map(w, next_worker(t, 1), &to, 1, err),
                     TENREC_EINVAL);
    assert_text_has(err->text, "may not be negative");
    tenrec_worker_drop(w);
    return TENREC_OK;
}

/* test_devices_option_mismatch */
static tenrec_status map_of_a_device_not_listed_is_refused(const struct tenrec_test *t,
                                                           tenrec_error *err)
{
    struct tenrec_worker *w = make(t);

    map(w, next_worker(t, 1), GPU(0), GPU(0));
    assert_status(tenrec_worker_set_devices(w, &GPU(1), 1, err), err);
    return is_refused(w, "the map for 'worker1'", "worker.devices of 'worker0', [cuda:1]");
}

/* test_devices_option_mismatch_reverse */
static tenrec_status map_to_a_device_not_listed_is_refused(const struct tenrec_test *t,
                                                           tenrec_error *err)
{
    struct tenrec_worker *w = make(t);

    map(w, next_worker(t, 1), GPU(0), GPU(1));
    assert_status(tenrec_worker_set_devices(w, &GPU(0), 1, err), err);
    return is_refused(w, "the map for 'worker1'", "worker.devices of 'worker1', [cuda:0]");
}

/* ---- CU-B --------------------------------------------------------------------------------- */

enum mode { SYNC, REMOTE };

/* The worker still works. */
static void add_on_host(const struct tenrec_test *t)
{
    struct tenrec_tensor *x = vector_on(CPU, 2, 1);
    const struct tenrec_value v = tenrec_value_tensor(x);
    struct tenrec_value *got = ask(t, next_worker(t, 1), "add_one", &v, 1);

    assert_vector_value(got, CPU, 2);
    tenrec_value_drop(got);
    tenrec_tensor_drop(x);
}

/* No map for the request: EDEVICE at once, from the call itself. */
static void request_misses_map(const struct tenrec_test *t, enum mode mode)
{
    struct tenrec_tensor *x = vector_on(GPU(0), 2, 0);
    const struct tenrec_value v = tenrec_value_tensor(x);
    struct tenrec_rref *r = NULL;
    tenrec_status st;
    tenrec_error err;

    if (mode == SYNC)
        st = tenrec_rpc_sync(t->worker, next_worker(t, 1), "add_one", &v, 1, NULL, NULL, &err);
    else
        st = tenrec_remote(t->worker, next_worker(t, 1), "add_one", &v, 1, NULL, &r, &err);
    assert_int_equal(st, TENREC_EDEVICE);
    assert_text_has(err.text, "cuda:0");
    assert_text_has(err.text, "worker.device_maps: {worker");
    assert_text_has(err.text, "tenrec_worker_set_device_map");
    tenrec_tensor_drop(x);
    add_on_host(t);
}

/* No map for the answer: it comes back as an error. */
static void response_misses_map(const struct tenrec_test *t, enum mode mode)
{
    struct tenrec_tensor *x = vector_on(CPU, 2, 0);
    const struct tenrec_value args[] = { tenrec_value_tensor(x), tenrec_value_tensor(x) };
    struct tenrec_rref *r = NULL;
    tenrec_status st;
    tenrec_error err;

    if (mode == SYNC) {
        st = tenrec_rpc_sync(t->worker, next_worker(t, 1), "add_to_gpu", args, 2, NULL, NULL, &err);
    } else {
        assert_status(
            tenrec_remote(t->worker, next_worker(t, 1), "add_to_gpu", args, 2, NULL, &r, &err),
            &err);
        st = tenrec_rref_to_here(r, NULL, NULL, &err);
        tenrec_rref_drop(r);
    }
    assert_int_equal(st, TENREC_EDEVICE);
    assert_text_has(err.text, "answer is on cuda:0");
    assert_text_has(err.text, "worker.device_maps: {worker");
    assert_string_equal(err.worker_name, next_worker(t, 1));
    tenrec_tensor_drop(x);
    add_on_host(t);
}

/* A group whose workers have devices, and no maps between them. */
static void begin(const struct tenrec_test *t)
{
    devices_use(t->worker);
}

/* test_device_maps_missing_config */
static tenrec_status request_without_a_map_fails(const struct tenrec_test *t, tenrec_error *err)
{
    (void)err;
    begin(t);
    request_misses_map(t, SYNC);
    return TENREC_OK;
}

/* test_device_maps_missing_config_not_timeout: the call has no limit at all */
static tenrec_status request_without_a_map_fails_at_once(const struct tenrec_test *t,
                                                         tenrec_error *err)
{
    begin(t);
    assert_status(tenrec_worker_set_rpc_timeout(t->worker, TENREC_TIMEOUT_NONE, err), err);
    request_misses_map(t, SYNC);
    response_misses_map(t, SYNC);
    return TENREC_OK;
}

/* test_device_maps_missing_config_loop */
static tenrec_status request_without_a_map_fails_again_and_again(const struct tenrec_test *t,
                                                                 tenrec_error *err)
{
    (void)err;
    begin(t);
    for (int i = 0; i < 8 + 5; i++)
        request_misses_map(t, SYNC);
    return TENREC_OK;
}

/* test_device_maps_missing_config_response */
static tenrec_status answer_without_a_map_fails(const struct tenrec_test *t, tenrec_error *err)
{
    (void)err;
    begin(t);
    response_misses_map(t, SYNC);
    return TENREC_OK;
}

/* test_device_maps_missing_config_response_loop */
static tenrec_status answer_without_a_map_fails_again_and_again(const struct tenrec_test *t,
                                                                tenrec_error *err)
{
    (void)err;
    begin(t);
    for (int i = 0; i < 8 + 5; i++)
        response_misses_map(t, SYNC);
    return TENREC_OK;
}

/* test_device_maps_missing_config_remote */
static tenrec_status creation_without_a_map_fails(const struct tenrec_test *t, tenrec_error *err)
{
    (void)err;
    begin(t);
    request_misses_map(t, REMOTE);
    return TENREC_OK;
}

/* test_device_maps_missing_config_remote_response */
static tenrec_status fetch_without_a_map_fails(const struct tenrec_test *t, tenrec_error *err)
{
    (void)err;
    begin(t);
    response_misses_map(t, REMOTE);
    return TENREC_OK;
}

/* ---- CU-E -------------------------------------------------------------------------------------
 */

/* test_device_mismatch */
static tenrec_status function_that_mixes_devices_fails(const struct tenrec_test *t,
                                                       tenrec_error *err)
{
    struct tenrec_tensor *x, *y;
    struct tenrec_value args[2];

    devices_use(t->worker);
    x = vector_on(GPU(0), 2, 0);
    y = vector_on(GPU(0), 2, 1);
    args[0] = tenrec_value_tensor(x);
    args[1] = tenrec_value_tensor(y);
    assert_int_equal(
        tenrec_rpc_sync(t->worker, next_worker(t, 1), "gpu_add_wrong", args, 2, NULL, NULL, err),
        TENREC_EINVAL);
    assert_text_has(err->text, "expected all tensors to be on the same device");
    tenrec_tensor_drop(x);
    tenrec_tensor_drop(y);
    return TENREC_OK;
}

static const char *const with_devices[] = { "worker.devices=[cuda:0, cuda:1]", NULL };
static const char *const ring[] = {
    "worker.device_maps={worker0: {cuda:0: cuda:0}, worker1: {cuda:0: cuda:0}, "
    "worker2: {cuda:0: cuda:0}, worker3: {cuda:0: cuda:0}}",
    NULL
};

#define BARE(test)                                                                                 \
    {                                                                                              \
#test, test,                                                                               \
        {                                                                                          \
            .flags = TENREC_TEST_NO_RPC                                                            \
        }                                                                                          \
    }
#define UNMAPPED(test)                                                                             \
    {                                                                                              \
#test, test,                                                                               \
        {                                                                                          \
            .settings = with_devices, .setup = device_functions_setup                              \
        }                                                                                          \
    }

int main(int argc, char **argv)
{
    static const struct parity_case cases[] = {
        BARE(map_for_nobody_is_refused),
        BARE(map_of_a_device_too_many_is_refused),
        BARE(map_to_a_device_too_many_is_refused),
        BARE(map_of_two_devices_to_one_is_refused),
        BARE(second_target_of_a_device_is_refused),
        BARE(negative_device_is_refused),
        BARE(map_of_a_device_not_listed_is_refused),
        BARE(map_to_a_device_not_listed_is_refused),
        UNMAPPED(request_without_a_map_fails),
        UNMAPPED(request_without_a_map_fails_at_once),
        UNMAPPED(request_without_a_map_fails_again_and_again),
        UNMAPPED(answer_without_a_map_fails),
        UNMAPPED(answer_without_a_map_fails_again_and_again),
        UNMAPPED(creation_without_a_map_fails),
        UNMAPPED(fetch_without_a_map_fails),
        { "function_that_mixes_devices_fails",
          function_that_mixes_devices_fails,
          { .settings = ring, .setup = device_functions_setup } },
    };

    return parity_run(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
