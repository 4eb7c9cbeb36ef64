/* SPDX-License-Identifier: Apache-2.0 */
/* request_test.c - requests of a stranger to a member of torch's group: each is answered, and none
 * does more than it may. */
#include "../testing.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <tenrec/chain.h>
#include <tenrec/config.h>
#include <tenrec/store.h>
#include <tenrec/torch.h>
#include <time.h>

#include "torch/member/member.h"
#include "torch/member/pickler.h"
#include "torch/member/references.h"

#define BACKEND                                                                                    \
    "init_method: memory://stranger\nbackend: tp\nbackends: {tp: {plugin: tensorpipe}}\n"

enum { MS = 20000 };

static struct tenrec_torch_member *member;
static struct tenrec_chain_options *options;
static struct tenrec_chain *stranger;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static struct tenrec_msg *answer;
static char *address;

static void on_answer(void *arg, tenrec_peer from, struct tenrec_msg *msg)
{
    (void)arg, (void)from;
    pthread_mutex_lock(&lock);
    if (answer)
        answer->release(answer);
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

    assert_status(tenrec_config_parse(BACKEND "worker: {group_protocol: torch, name: c0, rank: 0, "
                                              "max_served_bytes: 64MiB}\n",
                                      "test", &config, &err),
                  &err);
    assert_status(tenrec_torch_member_new(config, &member, &err), &err);
    assert_status(tenrec_torch_member_join(member, &err), &err);
    assert_status(tenrec_store_open("memory://stranger", MS, &store, &err), &err);
    assert_status(tenrec_store_get(store, "rpc_prefix_0/addrs/c0", MS, &text, &len, &err), &err);
    address = text;
    tenrec_store_close(store);
    assert_status(tenrec_chain_options_new(config, &options, &err), &err);
    tenrec_config_drop(config);
    all[1].address = address;
    all[0].address = "";
    assert_status(tenrec_chain_new(options, &user, &all[0], 2, &stranger, &err), &err);
    assert_status(tenrec_chain_start(stranger, all, 2, &err), &err);
}

static void tear_down(void)
{
    tenrec_chain_drop(stranger);
    if (answer)
        answer->release(answer);
    answer = NULL;
    tenrec_chain_options_drop(options);
    tenrec_torch_member_drop(member);
    free(address);
}

static void say(struct tenrec_msg *msg)
{
    msg->id = 7;
    tenrec_chain_send(stranger, 0, msg, (struct tenrec_done){ NULL, NULL });
}

/* Waits for an answer. */
static struct tenrec_msg *hear(void)
{
    struct tenrec_msg *got;
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20 * (time_t)testing_slow();
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

/* Sends `msg` (taken), and returns its answer. */
static struct tenrec_msg *ask(struct tenrec_msg *msg)
{
    say(msg);
    return hear();
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

static void is_refusal(struct tenrec_msg *got, const char *part)
{
    char text[512];

    assert_int_equal(got->type, TENREC_MSG_EXCEPTION);
    snprintf(text, sizeof text, "%.*s", (int)got->payload_len, (const char *)got->payload);
    assert_text_has(text, part);
    got->release(got);
}

static void is_refused(struct tenrec_msg *msg, const char *part)
{
    is_refusal(ask(msg), part);
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
    is_refused(message_of(TENREC_MSG_REMOTE_CALL, none, sizeof none), "ends without its two ids");
    is_refused(message_of(TENREC_MSG_SCRIPT_REMOTE_CALL, tuple, sizeof tuple),
               "ends without its two ids");
    is_refused(message_of(TENREC_MSG_FORWARD_AUTOGRAD_REQ, none, sizeof none),
               "0x10f is not supported");
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

/* 0.3 MB that recall a text of 256 KiB 20000 times. */
TEST_WITH(request_with_a_text_at_many_places_is_refused, set_up, tear_down)
{
    struct pickler p = { .jit = false };
    char *text = memset(malloc(256 << 10), 'x', 256 << 10);
    struct tenrec_msg *msg;
    tenrec_error err;

    pickler_call_begin(&p, "test", 4, "f");
    pickler_op(&p, '(');
    pickler_text(&p, text, 256 << 10);
    bytes_add_u8(&p.out, 0x94);
    for (int i = 0; i < 20000; i++)
        bytes_add(&p.out, "h\0", 2);
    pickler_op(&p, 't');
    pickler_call_end(&p);
    assert_status(pickler_message(&p, TENREC_MSG_CALL, &msg, &err), &err);
    is_refused(msg, "ETOOBIG: the values of a pickle of 3");
    free(text);
}

TEST_WITH(request_cannot_remove_the_member_itself, set_up, tear_down)
{
    struct tenrec_msg *got = ask(update("c0", 0, false));

    assert_int_equal(got->type, TENREC_MSG_RET);
    got->release(got);
    assert_int_equal(members(), 1);
}

/* ---- references ---------------------------------------------------------------------- */

enum { ME = 0, STRANGER = 5, THIRD = 6 };

static struct rref_id id_of(int64_t on, int64_t local)
{
    return (struct rref_id){ on, local };
}

/* The stranger becomes a member, known by its name. */
static void set_up_member(void)
{
    tenrec_error err;

    set_up();
    assert_status(torch_peers_join(member, "stranger", STRANGER, "uv://127.0.0.1:1", &err), &err);
}

static struct tenrec_msg *of_ids(int32_t type, struct rref_id a, struct rref_id b)
{
    const struct rref_id both[] = { a, b };
    struct tenrec_msg *msg;
    tenrec_error err;

    assert_status(references_message(type, both, 2, &msg, &err), &err);
    return msg;
}

static void is_answered(struct tenrec_msg *msg, int32_t type)
{
    struct tenrec_msg *got = ask(msg);

    assert_int_equal(got->type, type);
    got->release(got);
}

/* (id, 5) */
static struct tenrec_msg *fetch(struct rref_id id)
{
    struct pickler p = { .jit = true };
    struct tenrec_msg *msg;
    tenrec_error err;

    pickler_begin(&p);
    pickler_rref_id(&p, id);
    pickler_int(&p, STRANGER);
    bytes_add_u8(&p.out, 0x86);
    pickler_end(&p);
    assert_status(pickler_message(&p, TENREC_MSG_RREF_FETCH_CALL, &msg, &err), &err);
    return msg;
}

/* A creation by a function of Python without arguments. */
static struct tenrec_msg *creation(const char *name, struct rref_id id, struct rref_id fork)
{
    struct pickler p = { .jit = true }, udf = { .jit = false };
    struct tenrec_msg *msg;
    tenrec_error err;

    pickler_udf_begin(&udf, "test", 4, name);
    pickler_op(&udf, ')');
    pickler_call_end(&udf);
    pickler_begin(&p);
    pickler_op(&p, '(');
    pickler_nest(&p, &udf);
    pickler_rref_id(&p, id);
    pickler_rref_id(&p, fork);
    pickler_bool(&p, false);
    pickler_op(&p, 't');
    pickler_end(&p);
    assert_status(pickler_message(&p, TENREC_MSG_REMOTE_CALL, &msg, &err), &err);
    return msg;
}

/* A call of test.f with one reference, whose fields these are, and so many bytes. */
static struct tenrec_msg *call_with_bytes(struct rref_fork f, const char *type, size_t more)
{
    void *zeroed = calloc(1, more + 1);
    const struct tenrec_value bytes = tenrec_value_bytes(zeroed, more);
    struct pickler p = { .jit = false };
    struct tenrec_msg *msg;
    tenrec_error err;

    pickler_call_begin(&p, "test", 4, "f");
    pickler_op(&p, '(');
    pickler_global(&p, "torch.distributed.rpc", strlen("torch.distributed.rpc"), "rref");
    pickler_op(&p, '(');
    pickler_int(&p, f.owner);
    pickler_int(&p, f.id.on);
    pickler_int(&p, f.id.local);
    pickler_int(&p, f.fork.on);
    pickler_int(&p, f.fork.local);
    pickler_int(&p, f.parent);
    pickler_text(&p, type, strlen(type));
    pickler_op(&p, 't');
    pickler_op(&p, 'R');
    pickler_value(&p, &bytes);
    pickler_op(&p, 't');
    pickler_call_end(&p);
    assert_status(pickler_message(&p, TENREC_MSG_CALL, &msg, &err), &err);
    free(zeroed);
    return msg;
}

static struct tenrec_msg *call_with(struct rref_fork f, const char *type)
{
    return call_with_bytes(f, type, 0);
}

static struct rref_counts counts(void)
{
    return rref_context_count(member->refs);
}

static tenrec_status answer_seven(struct tenrec_torch_request *r, void *arg, tenrec_error *err)
{
    const struct tenrec_value v = tenrec_value_int(7);

    (void)arg;
    return tenrec_torch_request_return(r, &v, err);
}

TEST_WITH(request_about_references_is_refused_from_no_member, set_up, tear_down)
{
    is_refused(fetch(id_of(STRANGER, 1)), "only members");
    is_refused(of_ids(TENREC_MSG_RREF_USER_DELETE, id_of(STRANGER, 1), id_of(STRANGER, 2)),
               "only members");
    is_refused(creation("f", id_of(STRANGER, 1), id_of(STRANGER, 2)), "worker -1 creates");
    assert_int_equal(counts().num_owner_rrefs, 0);
}

TEST_WITH(request_about_references_is_refused_when_it_is_malformed, set_up_member, tear_down)
{
    static const int32_t type[] = { TENREC_MSG_RREF_USER_DELETE, TENREC_MSG_RREF_FORK_REQUEST,
                                    TENREC_MSG_RREF_CHILD_ACCEPT, TENREC_MSG_RREF_FETCH_CALL,
                                    TENREC_MSG_SCRIPT_RREF_FETCH_CALL };
    static const unsigned char none[] = { 0x80, 2, 'N', '.' };
    static const unsigned char numbers[] = { 0x80, 2, 'K', 1, 'K', 2, 0x86, '.' };
    static char large[8192];

    for (size_t i = 0; i < sizeof type / sizeof *type; i++) {
        is_refused(message_of(type[i], "", 0), "pickle at byte 0");
        is_refused(message_of(type[i], none, sizeof none), "malformed message");
        is_refused(message_of(type[i], numbers, sizeof numbers), "malformed message");
        is_refused(message_of(type[i], large, sizeof large), "it has 8192 bytes");
    }
    is_refused(of_ids(TENREC_MSG_RREF_FORK_REQUEST, id_of(1 << 20, 1), id_of(STRANGER, 1)),
               "item 0 is no id");
    is_refused(of_ids(TENREC_MSG_RREF_FORK_REQUEST, id_of(STRANGER, -1), id_of(STRANGER, 1)),
               "item 0 is no id");
    is_refused(of_ids(TENREC_MSG_RREF_CHILD_ACCEPT, id_of(ME, 1), id_of(ME, 2)), "a tuple of 1");
}

TEST_WITH(request_creates_a_value_once, set_up_member, tear_down)
{
    const struct rref_id id = id_of(STRANGER, 1), fork = id_of(STRANGER, 2);
    tenrec_error err;

    assert_status(tenrec_torch_member_register_function(member, "test.f", answer_seven, NULL, &err),
                  &err);
    is_answered(creation("f", id, fork), TENREC_MSG_REMOTE_RET);
    assert_int_equal(counts().num_forks, 1);
    is_answered(fetch(id), TENREC_MSG_RREF_FETCH_RET);
    is_refused(creation("f", id, fork), "made, or being made");
    is_refused(creation("f", id_of(THIRD, 1), fork), "creates a reference of worker 6");
    is_refused(creation("f", id, id_of(THIRD, 2)), "creates a reference");
    is_answered(of_ids(TENREC_MSG_RREF_USER_DELETE, id, id_of(STRANGER, 9)), TENREC_MSG_RREF_ACK);
    assert_int_equal(counts().num_forks, 1);
    is_answered(of_ids(TENREC_MSG_RREF_USER_DELETE, id, fork), TENREC_MSG_RREF_ACK);
    assert_int_equal(counts().num_owner_rrefs, 0);
    is_answered(of_ids(TENREC_MSG_RREF_USER_DELETE, id, fork), TENREC_MSG_RREF_ACK);
    is_refused(fetch(id), "has freed the value");
    is_refused(creation("f", id, fork), "deleted before its value was made");
}

/* The creation learns the function, while a message that refers to the value is read. The thread
 * waits a little longer in each round, so that it meets the reader at every step. */
enum { NAMINGS = 20000, NAMING_STEPS = 256 };

static struct arrivals created[NAMINGS];
static _Atomic int created_n;

static void *name_functions(void *arg)
{
    for (int i = 0; i < NAMINGS; i++) {
        while (atomic_load(&created_n) <= i)
            sched_yield();
        for (volatile int step = 0; step < i % NAMING_STEPS; step++)
            ;
        reference_name(created[i].item->ref, bytes_of_text(REFERENCE_OF_PYTHON), "test.C");
    }
    return arg;
}

TEST_WITH(request_that_refers_to_a_value_leaves_its_function_known, set_up_member, tear_down)
{
    struct arrivals used;
    struct tenrec_rref *ref;
    pthread_t thread;
    tenrec_error err;

    atomic_store(&created_n, 0);
    assert_int_equal(pthread_create(&thread, NULL, name_functions, NULL), 0);
    for (int i = 0; i < NAMINGS; i++) {
        struct rref_fork f = { .owner = ME,
                               .id = id_of(STRANGER, 3 * i),
                               .fork = id_of(STRANGER, 3 * i + 1),
                               .parent = STRANGER };

        created[i] = used = (struct arrivals){ .ctx = member->refs, .from = STRANGER };
        assert_status(arrivals_add(&created[i], &f, bytes_of_text(""), &ref, &err), &err);
        f.fork.local++;
        atomic_fetch_add(&created_n, 1);
        assert_status(arrivals_add(&used, &f, bytes_of_text("T"), &ref, &err), &err);
        arrivals_finish(&used);
    }
    pthread_join(thread, NULL);
    for (int i = 0; i < NAMINGS; i++) {
        char function[REFERENCE_FUNCTION_MAX + 1];

        reference_function(created[i].item->ref, function);
        assert_string_equal(function, "test.C");
        arrivals_finish(&created[i]);
    }
}

TEST_WITH(request_of_a_failed_creation_fails_the_fetches, set_up_member, tear_down)
{
    is_answered(creation("g", id_of(STRANGER, 1), id_of(STRANGER, 2)), TENREC_MSG_REMOTE_RET);
    is_refused(fetch(id_of(STRANGER, 1)), "has no function 'test.g'");
}

TEST_WITH(request_cannot_delete_the_fork_of_another_worker, set_up_member, tear_down)
{
    const struct tenrec_value seven = tenrec_value_int(7);
    struct tenrec_rref *r;
    struct rref_fork f;
    tenrec_error err;

    assert_status(torch_peers_join(member, "third", THIRD, "uv://127.0.0.1:2", &err), &err);
    assert_status(tenrec_torch_rref_new(member, &seven, &r, &err), &err);
    assert_status(rref_fork_for(r, THIRD, &f, &err), &err);
    is_refused(of_ids(TENREC_MSG_RREF_FORK_REQUEST, f.id, f.fork), "each worker must use its own");
    is_answered(of_ids(TENREC_MSG_RREF_USER_DELETE, f.id, f.fork), TENREC_MSG_RREF_ACK);
    assert_int_equal(counts().num_forks, 1);
    tenrec_rref_drop(r);
    assert_int_equal(counts().num_owner_rrefs, 1);
    torch_peers_leave(member, "third");
    assert_int_equal(counts().num_owner_rrefs, 0);
}

TEST_WITH(request_with_a_malformed_reference_is_refused, set_up_member, tear_down)
{
    struct rref_fork f = {
        .owner = THIRD, .id = id_of(THIRD, 1), .fork = id_of(STRANGER, 1), .parent = STRANGER
    };
    char type[REFERENCE_TYPE_MAX + 2];
    tenrec_error err;

    assert_status(tenrec_torch_member_register_function(member, "test.f", answer_seven, NULL, &err),
                  &err);
    f.parent = THIRD;
    is_refused(call_with(f, "PyObject"), "sends a reference that worker 6 has shared");
    f.parent = STRANGER;
    /* No such owner: the parent learns that the reference is not used. */
    is_refused(call_with(f, "PyObject"), "EPEER_UNKNOWN");
    f.owner = 1 << 20;
    is_refused(call_with(f, "PyObject"), "six ids and a type");
    f.owner = STRANGER;
    memset(type, 'x', sizeof type - 1);
    type[sizeof type - 1] = '\0';
    is_refused(call_with(f, type), "six ids and a type");
    is_answered(call_with(f, "PyObject"), TENREC_MSG_RET);
}

/* The value is never made: each call waits, until all of them would hold more than 64 MiB. */
TEST_WITH(request_that_waits_for_references_counts_its_bytes, set_up_member, tear_down)
{
    struct rref_fork f = {
        .owner = ME, .id = id_of(STRANGER, 1), .fork = id_of(STRANGER, 2), .parent = STRANGER
    };

    for (int i = 0; i < 7; i++) {
        f.fork.local++;
        say(call_with_bytes(f, "PyObject", (size_t)10 << 20));
    }
    is_refusal(hear(), "EAGAIN: too many calls already wait for references here");
}
