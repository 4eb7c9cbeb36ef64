/* SPDX-License-Identifier: Apache-2.0 */
/* receive_pool_test.c - workers receive into reused memory, on the backend
 * named in argv. Where blocks are not recycled (base/recycle.h) the same cases check
 * that all memory is new. */
#include "../support/cluster.h"
#include "../support/debug_info.h"
#include "../support/functions.h"
#include "core/base/recycle.h"
#include "core/tensor/storage_pool.h"

#include "../testing.h"

enum { ELEMENTS = 1 << 20, CALLS = 4 };

static struct cluster two;

static void open_with(const char *setting)
{
    const char *const extra[] = { setting, NULL };

    cluster_open(&two, 2, extra, functions_register);
}

/* Calls, and drops each result before the next call. */
static void receive(int calls)
{
    const struct tenrec_value length = tenrec_value_int(ELEMENTS);
    tenrec_error err;

    for (int i = 0; i < calls; i++) {
        struct tenrec_value *got = NULL;
        const float *f;
        if (tenrec_rpc_sync(two.worker[0], "worker1", "range", &length, 1, NULL, &got, &err))
            fail_msg("%s", err.text);
        f = tenrec_tensor_data(got->u.tensor);
        assert_true(f[0] == 0 && f[ELEMENTS / 2] == ELEMENTS / 2 &&
                    f[ELEMENTS - 1] == ELEMENTS - 1);
        tenrec_value_drop(got);
    }
}

TEST(receive_pool_serves_dropped_results_again)
{
    struct storage_counts before, after;

    open_with("worker.receive_pool=64MiB");
    receive(1);
    before = storage_pool_count(storage_pool_of_process());
    receive(CALLS);
    after = storage_pool_count(storage_pool_of_process());
    /* Two tensors per call: the one that the function makes, and what arrives. */
    assert_int_equal(after.fresh - before.fresh + after.reused - before.reused, 2 * CALLS);
    if (RECYCLE)
        assert_true(after.reused - before.reused >= CALLS);
    else
        assert_int_equal(after.reused, before.reused);
    assert_int_equal(after.limit, 2 * (size_t)64 << 20); /* of two workers */
    cluster_close(&two, TENREC_GRACEFUL);
    after = storage_pool_count(storage_pool_of_process());
    assert_int_equal(after.limit, 0);
    assert_int_equal(after.kept_bytes, 0);
    assert_int_equal(after.used_blocks, 0);
}

TEST(receive_pool_keeps_nothing_when_off)
{
    struct storage_counts before = storage_pool_count(storage_pool_of_process()), after;

    open_with("worker.receive_pool=0");
    receive(CALLS);
    after = storage_pool_count(storage_pool_of_process());
    assert_int_equal(after.reused, before.reused);
    assert_int_equal(after.kept_blocks, 0);
    assert_int_equal(after.limit, 0);
    cluster_close(&two, TENREC_GRACEFUL);
}

TEST(receive_pool_is_in_the_debug_info)
{
    open_with("worker.receive_pool=1MiB");
    receive(1);
    assert_int_equal(debug_info_number(two.worker[0], "memory.pool_limit_bytes"), 2 << 20);
    assert_true(debug_info_number(two.worker[0], "memory.pool_fresh") >= 2);
    cluster_close(&two, TENREC_GRACEFUL);
}

TEST(receive_pool_takes_a_tensor_back_after_the_workers_are_gone)
{
    const struct tenrec_value length = tenrec_value_int(ELEMENTS);
    struct tenrec_value *got = NULL;
    struct storage_counts c;

    open_with("worker.receive_pool=64MiB");
    assert_int_equal(
        tenrec_rpc_sync(two.worker[0], "worker1", "range", &length, 1, NULL, &got, NULL),
        TENREC_OK);
    cluster_close(&two, TENREC_GRACEFUL);
    assert_true(((float *)tenrec_tensor_data(got->u.tensor))[1] == 1);
    tenrec_value_drop(got);
    c = storage_pool_count(storage_pool_of_process());
    assert_int_equal(c.used_blocks, 0);
    assert_int_equal(c.kept_blocks, 0);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cluster_use(argv[1]);
    return testing_run(NULL, NULL);
}
