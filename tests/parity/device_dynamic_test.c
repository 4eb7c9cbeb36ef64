/* SPDX-License-Identifier: Apache-2.0 */
/* device_dynamic_test.c - device maps for workers that join later: group TP-E of
 * docs/internals/parity.md. */
#include "device_functions.h"
#include "devices.h"
#include "own.h"

/* x + 1 on the other side's other device, and back. */
static void add_one_at(struct tenrec_worker *w, const char *to, struct tenrec_device device)
{
    struct tenrec_tensor *x = vector_on(device, 2, 1);
    const struct tenrec_value arg = tenrec_value_tensor(x);
    struct tenrec_value *got = NULL;
    tenrec_error err;

    assert_status(tenrec_rpc_sync(w, to, "add_one", &arg, 1, NULL, &got, &err), &err);
    assert_vector_value(got, device, 2);
    tenrec_value_drop(got);
    tenrec_tensor_drop(x);
}

/* test_dynamic_rpc_existing_rank_can_communicate_with_new_rank_cuda */
static tenrec_status first_worker_sends_to_devices_of_new_ones(const struct tenrec_test *t,
                                                               tenrec_error *err)
{
    static const struct tenrec_device_pair crossed[] = {
        { { TENREC_CUDA, 1 }, { TENREC_CUDA, 0 } }, { { TENREC_CUDA, 0 }, { TENREC_CUDA, 1 } }
    };
    struct tenrec_process_group *pg = meet(t);
    struct tenrec_worker *w = NULL;
    char url[512], name[TENREC_NAME_MAX + 1];

    snprintf(url, sizeof url, "%s?rank=%d", t->init_method, t->rank);
    assert_status(own_worker(t, device_functions_setup, "init_method", url, &w, err), err);
    for (int32_t i = 1; t->rank == 0 && i < t->world_size; i++)
        assert_status(
            tenrec_worker_set_device_map(w, tenrec_test_worker_name(i, name), crossed, 2, err),
            err);
    if (t->rank == 0)
        assert_status(tenrec_init_rpc(w, err), err);
    barrier(pg);
    if (t->rank != 0)
        assert_status(tenrec_init_rpc(w, err), err);
    devices_use(w);
    barrier(pg);
    for (int32_t i = 1; t->rank == 0 && i < t->world_size; i++) {
        add_one_at(w, tenrec_test_worker_name(i, name), GPU(0));
        add_one_at(w, tenrec_test_worker_name(i, name), GPU(1));
    }
    barrier(pg);
    leave_and_drop(w);
    tenrec_process_group_drop(pg);
    return TENREC_OK;
}

int main(int argc, char **argv)
{
    const struct parity_case cases[] = {
        { .name = "parity_first_worker_sends_to_devices_of_new_ones",
          first_worker_sends_to_devices_of_new_ones,
          { .flags = TENREC_TEST_NO_RPC } },
    };

    return parity_run(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
