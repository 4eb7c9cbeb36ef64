/* SPDX-License-Identifier: Apache-2.0 */
#include "../testing.h"

#include <stdatomic.h>
#include <tenrec/backend.h>
#include <tenrec/config.h>

static struct tenrec_chain_options *options;

static void construct(void)
{
    struct tenrec_config *config;
    tenrec_error err;

    assert_status(tenrec_config_parse("backend: inproc\n"
                                      "backends: { inproc: { plugin: inproc } }\n",
                                      NULL, &config, &err),
                  &err);
    assert_status(tenrec_chain_options_new(config, &options, &err), &err);
    tenrec_config_drop(config);
}

static void drop(void)
{
    tenrec_chain_options_drop(options);
}

struct end {
    struct tenrec_chain *agent;
    atomic_int got, lost, told;
};

static void on_deliver(void *arg, tenrec_peer from, struct tenrec_msg *msg)
{
    struct end *end = arg;

    if (msg->id == 7 && from == 0 && msg->payload_len == 2 && memcmp(msg->payload, "hi", 2) == 0)
        atomic_fetch_add(&end->got, 1);
    msg->release(msg);
}

static void on_lost(void *arg, tenrec_peer peer, const tenrec_error *why)
{
    (void)peer, (void)why;
    atomic_fetch_add(&((struct end *)arg)->lost, 1);
}

static void on_done(void *arg, const tenrec_error *err)
{
    if (!err)
        atomic_fetch_add(&((struct end *)arg)->told, 1);
}

static void count(void *arg, const char *key, const char *value)
{
    if (strcmp(key, "inproc.sent") == 0 && strcmp(value, "1") == 0)
        ++*(int *)arg;
}

TEST(chain_carries_messages_without_rpc)
{
    struct tenrec_member member[] = { { .size = sizeof member[0], .id = 0, .name = "a" },
                                      { .size = sizeof member[0], .id = 1, .name = "b" } };
    struct end end[2] = { { .got = 0 } };
    struct tenrec_msg *msg;
    tenrec_error err;
    int sent = 0;

    for (int i = 0; i < 2; i++) {
        const struct tenrec_chain_user user = {
            .size = sizeof user, .deliver = on_deliver, .peer_lost = on_lost, .arg = &end[i]
        };
        assert_status(tenrec_chain_new(options, &user, &member[i], 2, &end[i].agent, &err), &err);
        member[i].address = tenrec_chain_address(end[i].agent);
    }
    for (int i = 0; i < 2; i++)
        assert_status(tenrec_chain_start(end[i].agent, member, 2, &err), &err);
    msg = tenrec_msg_new(2, 0);
    msg->type = TENREC_MSG_CALL;
    msg->id = 7;
    memcpy(msg->payload, "hi", 2);
    tenrec_chain_send(end[0].agent, 1, msg, (struct tenrec_done){ on_done, &end[0] });
    assert_becomes(atomic_load(&end[1].got) == 1 && atomic_load(&end[0].told) == 1);
    tenrec_chain_list_debug_info(end[0].agent, count, &sent);
    assert_int_equal(sent, 1);
    tenrec_chain_drop(end[1].agent);
    assert_becomes(atomic_load(&end[0].lost) == 1);
    tenrec_chain_drop(end[0].agent);
    tenrec_chain_drop(NULL);
}

TEST(chain_refuses_bad_arguments)
{
    const struct tenrec_member me = { .size = sizeof me, .id = 0, .name = "a" };
    const struct tenrec_member nobody = { .size = sizeof me, .id = -1, .name = "a" };
    const struct tenrec_chain_user user = { .size = sizeof user, .deliver = on_deliver };
    const struct tenrec_chain_user mute = { .size = sizeof mute };
    struct tenrec_chain *agent;
    tenrec_error err;

    assert_int_equal(tenrec_chain_new(NULL, &user, &me, 1, &agent, &err), TENREC_EINVAL);
    assert_int_equal(tenrec_chain_new(options, NULL, &me, 1, &agent, &err), TENREC_EINVAL);
    assert_int_equal(tenrec_chain_new(options, &user, NULL, 1, &agent, &err), TENREC_EINVAL);
    assert_int_equal(tenrec_chain_new(options, &mute, &me, 1, &agent, &err), TENREC_EINVAL);
    assert_text_has(err.text, "has no deliver");
    assert_int_equal(tenrec_chain_new(options, &user, &nobody, 1, &agent, &err), TENREC_EINVAL);
    assert_text_has(err.text, "the id is -1");
}

TEST(construct_refuses_a_missing_config)
{
    struct tenrec_chain_options *none;
    tenrec_error err;

    assert_int_equal(tenrec_chain_options_new(NULL, &none, &err), TENREC_EINVAL);
    tenrec_chain_options_drop(NULL);
}

int main(void)
{
    return testing_run(construct, drop);
}
