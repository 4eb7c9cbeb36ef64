/* SPDX-License-Identifier: Apache-2.0 */
/* torture_test.c - limit while each allocation fails once: it begins or says why not, each send
 * completes once, nothing leaks. */
#include "../support/torture.h"
#include "../support/torture_life.h"
#include "../testing.h"

#include <tenrec/backend.h>
#include <tenrec/chain.h>
#include <tenrec/config.h>
#include <tenrec/plugin.h>

TEST(limit_lives_when_any_allocation_fails)
{
    /* Some pass, some are queued, some come back and are refused. */
    static const int32_t type[] = { TENREC_MSG_CALL, TENREC_MSG_RET, TENREC_MSG_REMOTE_CALL,
                                    TENREC_MSG_ONE_WAY_CALL };
    struct torture_life life = { .type = type, .n_types = 4, .n_sends = 8 };
    tenrec_error err;

    assert_status(
        tenrec_register_backend(&tenrec_plugin, tenrec_construct_options, tenrec_init_agent, &err),
        &err);
    assert_status(
        tenrec_config_parse("backend: outer\nbackends:\n  here: { plugin: echo }\n"
                            "  inner: { plugin: limit, wraps: here, options: { direction: in, "
                            "over: refuse, calls_per_second: 0.001, burst: 1000s, by: type } }\n"
                            "  outer: { plugin: limit, wraps: inner, options: { "
                            "calls_per_second: 1000, burst: 2ms, by: type_and_peer } }\n",
                            "t.yaml", &life.config, &err),
        &err);
    assert_true(torture(TORTURE_ALLOCATIONS, 1, torture_life, &life) > 20);
    tenrec_config_drop(life.config);
}
