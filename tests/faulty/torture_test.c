/* SPDX-License-Identifier: Apache-2.0 */
/* torture_test.c - faulty while each allocation fails once, its own and the
 * core's: it begins or says why not, sends end, nothing leaks. */
#include "../support/cluster.h"
#include "../support/functions.h"
#include "../support/torture.h"
#include "../support/torture_life.h"
#include "../testing.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <tenrec/backend.h>
#include <tenrec/config.h>

/* The limit of a call that may be lost; long enough for one that is not. */
static int64_t short_ms(void)
{
    const char *slow = getenv("TENREC_TEST_SLOW");
    long n = slow ? strtol(slow, NULL, 10) : 1;

    return 50 * (n > 0 ? n : 1);
}

static const char rules[] =
    "[{ do: fail_in_flight, after_messages: 1, times: 1 }, { do: duplicate, on: [CALL] },"
    " { do: corrupt, on: [RET], times: 1 }, { do: slow, bytes_per_second: 10kB, on: [CANCEL] },"
    " { do: reorder, by: 1ms, on: [RET], times: 1, count_by: payload },"
    " { do: delay, by: 1ms, from: ['*'], on: [RET], times: 1 },"
    " { do: duplicate, from: [worker0, '*'], on: [REQUEST, RET] }]";

static void use_own_faulty(void)
{
    tenrec_error err;

    if (!tenrec_backend_registered("faulty"))
        assert_status(tenrec_register_backend(&tenrec_plugin, tenrec_construct_options,
                                              tenrec_init_agent, &err),
                      &err);
}

/* ---- without RPC: from the options to the end --------------------------------- */

TEST(faulty_lives_when_any_allocation_fails)
{
    static const int32_t type[] = { TENREC_MSG_CALL, TENREC_MSG_RET, TENREC_MSG_CANCEL,
                                    TENREC_MSG_RET, TENREC_MSG_REMOTE_CALL };
    struct torture_life life = { .type = type, .n_types = 5, .n_sends = 5 };
    tenrec_error err;

    assert_status(tenrec_config_parse("backend: flaky\nbackends:\n  here: { plugin: echo }\n"
                                      "  flaky: { plugin: faulty, wraps: here }\n",
                                      "t.yaml", &life.config, &err),
                  &err);
    assert_status(tenrec_config_set(life.config, "backends.flaky.options.rules", rules, &err),
                  &err);
    assert_status(tenrec_config_set(life.config, "backends.flaky.options.seed", "5", &err), &err);
    assert_true(torture(TORTURE_ALLOCATIONS, 1, torture_life, &life) > 50);
    tenrec_config_drop(life.config);
}

/* ---- with RPC -------------------------------------------------------------------- */

static struct cluster two;

static tenrec_status add(int64_t timeout_ms, tenrec_error *err)
{
    const struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = timeout_ms };
    const struct tenrec_value args[] = { tenrec_value_int(2), tenrec_value_int(40) };

    return tenrec_rpc_sync(two.worker[0], "worker1", "add", args, 2, &o, NULL, err);
}

static tenrec_status one_call(void *arg, tenrec_error *err)
{
    tenrec_status st;

    (void)arg;
    /* The connection that the last run broke has been reported. */
    assert_becomes(add(CLUSTER_LONG_MS, err) == TENREC_OK);
    torture_on();
    st = add(short_ms(), err);
    torture_off();
    return st;
}

TEST(faulty_calls_end_when_any_allocation_fails)
{
    static const char *const extra[] = {
        "backends.faulty_inproc.options.rules="
        "[{ do: duplicate }, { do: duplicate, from: ['*'], on: [REQUEST] },"
        " { do: delay, by: 1ms, from: ['*'] }]",
        NULL
    };
    tenrec_error err;

    cluster_use("faulty_inproc");
    cluster_open(&two, 2, extra, functions_register);
    assert_true(torture(TORTURE_ALLOCATIONS, 1, one_call, NULL) > 5);
    assert_status(add(CLUSTER_LONG_MS, &err), &err);
    cluster_close(&two, TENREC_GRACEFUL);
}

int main(void)
{
    use_own_faulty();
    return testing_run(NULL, NULL);
}
