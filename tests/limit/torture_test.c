/* SPDX-License-Identifier: Apache-2.0 */
/* torture_test.c - limit while each allocation fails once: it begins or says why not, each send
 * completes once, nothing leaks. */
#include "../support/torture.h"
#include "../testing.h"

#include <stdatomic.h>
#include <tenrec/backend.h>
#include <tenrec/chain.h>
#include <tenrec/config.h>
#include <tenrec/plugin.h>

enum { SENDS = 8 };

static atomic_int told;

static void on_deliver(void *arg, tenrec_peer from, struct tenrec_msg *msg)
{
    (void)arg, (void)from;
    msg->release(msg);
}

static void on_done(void *arg, const tenrec_error *err)
{
    (void)arg, (void)err;
    atomic_fetch_add(&told, 1);
}

/* Some pass, some are queued, some come back and are refused. */
static void send_some(struct tenrec_chain *agent)
{
    static const int32_t type[] = { TENREC_MSG_CALL, TENREC_MSG_RET, TENREC_MSG_REMOTE_CALL,
                                    TENREC_MSG_ONE_WAY_CALL };

    for (size_t i = 0; i < SENDS; i++) {
        struct tenrec_msg *msg = tenrec_msg_new(100, 0);
        if (!msg) { /* nothing was sent, so nothing completes */
            atomic_fetch_add(&told, 1);
            continue;
        }
        memset(msg->payload, (int)i, 100);
        msg->type = type[i % 4];
        tenrec_chain_send(agent, 0, msg, (struct tenrec_done){ on_done, NULL });
    }
}

static tenrec_status whole_life(void *arg, tenrec_error *err)
{
    const struct tenrec_chain_user user = { .size = sizeof user, .deliver = on_deliver };
    const struct tenrec_member me = { sizeof me, 0, 0, "worker0", "" };
    struct tenrec_rpc_backend_options *options = NULL;
    struct tenrec_chain *agent = NULL;
    tenrec_status st;

    torture_on();
    st = tenrec_construct_rpc_backend_options(arg, &options, err);
    if (st == TENREC_OK)
        st = tenrec_init_backend(options, &user, &me, 1, &agent, err);
    if (st == TENREC_OK)
        st = tenrec_chain_start(agent, &me, 1, err);
    if (st == TENREC_OK) {
        atomic_store(&told, 0);
        send_some(agent);
    }
    tenrec_chain_drop(agent);
    torture_off();
    if (st == TENREC_OK)
        assert_int_equal(atomic_load(&told), SENDS);
    tenrec_rpc_backend_options_drop(options);
    return st;
}

TEST(limit_lives_when_any_allocation_fails)
{
    struct tenrec_config *config;
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
                            "t.yaml", &config, &err),
        &err);
    assert_true(torture(TORTURE_ALLOCATIONS, 1, whole_life, config) > 20);
    tenrec_config_drop(config);
}
