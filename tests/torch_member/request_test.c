/* SPDX-License-Identifier: Apache-2.0 */
/* request_test.c - requests of a stranger to a member of torch's group: each is answered, and none
 * does more than it may. */
#include "../testing.h"

#include <pthread.h>
#include <tenrec/chain.h>
#include <tenrec/config.h>
#include <tenrec/store.h>
#include <tenrec/torch.h>
#include <time.h>

#include "torch_member/pickler.h"

#define BACKEND                                                                                    \
    "init_method: memory://stranger\nbackend: tp\nbackends: {tp: {plugin: tensorpipe}}\n"

enum { MS = 20000 };

static struct tenrec_torch_member *member;
static struct tenrec_rpc_backend_options *options;
static struct tenrec_chain *stranger;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static struct tenrec_msg *answer;
static char *address;

static void on_answer(void *arg, tenrec_peer from, struct tenrec_msg *msg)
{
    (void)arg, (void)from;
    pthread_mutex_lock(&lock);
    answer = msg;
    pthread_cond_signal(&arrived);
    pthread_mutex_unlock(&lock);
}

static void set_up(void)
{
    const struct tenrec_chain_user user = { .size = sizeof user, .deliver = on_answer };
    struct tenrec_member all[2] = { { .size = sizeof *all, .id = 5, .name = "stranger" },
                                    { .size = sizeof *all, .id = 0, .name = "c0" } };
    struct tenrec_config *config;
    struct tenrec_store *store;
    tenrec_error err;
    void *text;
    size_t len;

    assert_status(tenrec_config_parse(BACKEND
                                      "worker: {group_protocol: torch, name: c0, rank: 0}\n",
                                      "test", &config, &err),
                  &err);
    assert_status(tenrec_torch_member_new(config, &member, &err), &err);
    assert_status(tenrec_torch_member_join(member, &err), &err);
    assert_status(tenrec_store_open("memory://stranger", MS, &store, &err), &err);
    assert_status(tenrec_store_get(store, "rpc_prefix_0/addrs/c0", MS, &text, &len, &err), &err);
    address = text;
    tenrec_store_close(store);
    assert_status(tenrec_construct_rpc_backend_options(config, &options, &err), &err);
    tenrec_config_drop(config);
    all[1].address = address;
    all[0].address = "";
    assert_status(tenrec_init_backend(options, &user, &all[0], 2, &stranger, &err), &err);
    assert_status(tenrec_chain_start(stranger, all, 2, &err), &err);
}

static void tear_down(void)
{
    tenrec_chain_drop(stranger);
    tenrec_rpc_backend_options_drop(options);
    tenrec_torch_member_drop(member);
    free(address);
}

/* Sends `msg` (taken), and returns its answer. */
static struct tenrec_msg *ask(struct tenrec_msg *msg)
{
    struct tenrec_msg *got;
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20 * (time_t)testing_slow();
    msg->id = 7;
    tenrec_chain_send(stranger, 0, msg, (struct tenrec_done){ NULL, NULL });
    pthread_mutex_lock(&lock);
    while (!answer && pthread_cond_timedwait(&arrived, &lock, &until) == 0)
        ;
    got = answer;
    answer = NULL;
    pthread_mutex_unlock(&lock);
    assert_non_null(got);
    assert_int_equal(got->id, 7);
    return got;
}

static struct tenrec_msg *message_of(int32_t type, const void *data, size_t len)
{
    struct tenrec_msg *msg = tenrec_msg_new(len, 0);

    assert_non_null(msg);
    msg->type = type;
    if (len > 0)
        memcpy(msg->payload, data, len);
    return msg;
}

static void is_refused(struct tenrec_msg *msg, const char *part)
{
    struct tenrec_msg *got = ask(msg);
    char text[512];

    assert_int_equal(got->type, TENREC_MSG_EXCEPTION);
    snprintf(text, sizeof text, "%.*s", (int)got->payload_len, (const char *)got->payload);
    assert_text_has(text, part);
    got->release(got);
}

/* A call of _update_group_membership. */
static struct tenrec_msg *update(const char *name, int64_t id, bool join)
{
    static const char module[] = "torch.distributed.rpc._utils";
    struct pickler p = { .jit = false };
    struct tenrec_msg *msg;
    tenrec_error err;

    pickler_call_begin(&p, module, strlen(module), "_update_group_membership");
    pickler_op(&p, '(');
    pickler_worker_info(&p, name, id);
    pickler_op(&p, ']');
    pickler_op(&p, '}');
    pickler_bool(&p, join);
    pickler_op(&p, 't');
    pickler_call_end(&p);
    assert_status(pickler_message(&p, TENREC_MSG_CALL, &msg, &err), &err);
    return msg;
}

static size_t members(void)
{
    struct tenrec_worker_info info[4];
    tenrec_error err;
    size_t n;

    assert_status(tenrec_torch_member_get_infos(member, info, 4, &n, &err), &err);
    return n;
}

TEST_WITH(request_is_answered_when_it_is_malformed, set_up, tear_down)
{
    static const unsigned char none[] = { 0x80, 2, 'N', '.' };
    static const unsigned char call[] = { 0, 0x80, 2, 'N', '.' };
    static const unsigned char tuple[] = { 0x80, 2, ')', '.' };
    static const unsigned char wire[] = { 0xd9, 0xd9, 0xf7, 0x80 }; /* of a Tenrec worker */

    is_refused(message_of(TENREC_MSG_CALL, "", 0), "it is empty");
    is_refused(message_of(TENREC_MSG_CALL, call, 1), "it is empty");
    is_refused(message_of(TENREC_MSG_CALL, call, 3), "pickle at byte");
    is_refused(message_of(TENREC_MSG_CALL, call, sizeof call), "malformed call");
    is_refused(message_of(TENREC_MSG_CALL, wire, sizeof wire), "pickle at byte 0");
    is_refused(message_of(TENREC_MSG_SCRIPT_CALL, none, sizeof none), "malformed call");
    is_refused(message_of(TENREC_MSG_SCRIPT_CALL, tuple, sizeof tuple), "malformed call");
    is_refused(message_of(TENREC_MSG_REMOTE_CALL, call, sizeof call), "0x105 is not supported");
    is_refused(message_of(TENREC_MSG_SCRIPT_RREF_FETCH_CALL, none, sizeof none),
               "0x107 is not supported");
    assert_int_equal(members(), 1);
}

TEST_WITH(request_of_an_unlisted_worker_to_join_is_refused, set_up, tear_down)
{
    is_refused(update("w9", 9, true), "has no worker 'w9' with id 9");
    is_refused(update("c0", 3, true), "has no worker 'c0' with id 3");
    is_refused(update("w9", -1, true), "out of range");
    is_refused(update("w9", 1 << 20, true), "out of range");
    is_refused(update("", 1, true), "out of range");
    assert_int_equal(members(), 1);
}

TEST_WITH(request_cannot_remove_the_member_itself, set_up, tear_down)
{
    struct tenrec_msg *got = ask(update("c0", 0, false));

    assert_int_equal(got->type, TENREC_MSG_RET);
    got->release(got);
    assert_int_equal(members(), 1);
}
