/* faulty over echo: what is failed, what is delayed, what is counted. */
#include "../testing.h"
#include "backend/message.h"
#include "backend/stack.h"
#include "base/loop.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <tenrec/config.h>
#include <tenrec/log.h>

static struct loop *loop;
static struct stack *stack;
static struct chain *chain;
static atomic_int ok, failed, delivered, released;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards last */
static tenrec_error last;
static char log_text[4096];

static void on_deliver(void *arg, tenrec_peer from, struct tenrec_msg *msg)
{
    (void)arg, (void)from;
    msg->release(msg);
    atomic_fetch_add(&delivered, 1);
}

static void on_done(void *arg, const tenrec_error *err)
{
    (void)arg;
    if (err) {
        pthread_mutex_lock(&lock);
        last = *err;
        pthread_mutex_unlock(&lock);
    }
    atomic_fetch_add(err ? &failed : &ok, 1);
}

static void on_release(void *arg, struct tenrec_msg *msg)
{
    (void)arg, (void)msg;
    atomic_fetch_add(&released, 1);
}

static void on_log(void *arg, enum tenrec_log_level level, const char *part, const char *text)
{
    static const char *const names[] = { "error", "warn", "info", "debug", "trace" };
    size_t n = strlen(log_text);

    (void)arg;
    snprintf(log_text + n, sizeof log_text - n, "%s %s: %s\n", names[level], part, text);
}

/* Opens the config with `options` of faulty, e.g. "{ num_fail_sends: 1 }". */
static tenrec_status try_open(const char *options, tenrec_error *err)
{
    struct tenrec_config *config;
    char text[1024];
    tenrec_status st;

    snprintf(text, sizeof text,
             "backend: flaky\nbackends:\n  here: { plugin: echo }\n"
             "  flaky:\n    plugin: faulty\n    wraps: here\n    options: %s\n",
             options);
    st = tenrec_config_parse(text, "t.yaml", &config, err);
    if (st != TENREC_OK)
        return st;
    st = stack_open(config, &stack, err);
    tenrec_config_drop(config);
    return st;
}

static void open_chain(const char *options)
{
    const struct chain_identity id = { .world = 1, .name = "worker0" };
    const struct chain_user user = { .deliver = on_deliver };
    const struct tenrec_member member = { sizeof member, 0, 0, "worker0", "" };
    const struct chain_layer *layer;
    tenrec_error err;
    size_t n;

    assert_status(try_open(options, &err), &err);
    layer = stack_layers(stack, &n);
    assert_status(chain_open(layer, n, &id, loop, &user, &chain, &err), &err);
    assert_status(chain_start(chain, &member, 1, &err), &err);
}

static int set_up(void **state)
{
    tenrec_error err;

    (void)state;
    atomic_store(&ok, 0);
    atomic_store(&failed, 0);
    atomic_store(&delivered, 0);
    atomic_store(&released, 0);
    log_text[0] = '\0';
    stack = NULL;
    chain = NULL;
    tenrec_set_log_callback(on_log, NULL);
    tenrec_set_log_level(TENREC_LOG_INFO);
    return loop_open(&loop, &err);
}

static int tear_down(void **state)
{
    (void)state;
    chain_close(chain);
    stack_close(stack);
    loop_close(loop);
    tenrec_set_log_callback(NULL, NULL);
    return 0;
}

static void send_bytes(int32_t type, const char *payload, uint32_t key_len)
{
    struct tenrec_msg *msg = message_new(strlen(payload), 0);

    assert_non_null(msg);
    msg->type = type;
    memcpy(msg->payload, payload, strlen(payload));
    msg->key_len = key_len;
    message_on_release(msg, on_release, NULL);
    chain_send(chain, 0, msg, (struct tenrec_done){ on_done, NULL });
}

/* A CALL of `payload`; true when it went through. */
static bool call(const char *payload)
{
    int before = atomic_load(&ok);

    send_bytes(TENREC_MSG_CALL, payload, 0);
    return atomic_load(&ok) > before;
}

/* --- failing ------------------------------------------------------------------ */

static void faulty_fails_the_first_sends_of_each_payload(void **state)
{
    (void)state;
    open_chain("{ messages_to_fail: [CALL], num_fail_sends: 2 }");
    assert_false(call("add 1 2"));
    assert_int_equal(last.code, TENREC_EINJECTED);
    assert_string_equal(last.text, "faulty: told to fail this CALL (1 of 2)");
    assert_int_equal(atomic_load(&released), 1);
    assert_false(call("add 1 2"));
    assert_false(call("add 1 3")); /* another payload counts anew */
    assert_true(call("add 1 2"));
    assert_true(call("add 1 2")); /* and once through it is not failed again */
    assert_false(call("add 1 3"));
    assert_true(call("add 1 3"));
    assert_int_equal(atomic_load(&delivered), 3);
}

static void faulty_counts_by_the_key_when_there_is_one(void **state)
{
    (void)state;
    open_chain("{ messages_to_fail: [CALL], num_fail_sends: 1 }");
    send_bytes(TENREC_MSG_CALL, "add 1 2|left 59s", 7);
    assert_int_equal(atomic_load(&failed), 1);
    send_bytes(TENREC_MSG_CALL, "add 1 2|left 58s", 7);
    assert_int_equal(atomic_load(&failed), 1);
    assert_int_equal(atomic_load(&ok), 1);
}

/* As in torch: neither the type nor the receiver is part of the key. */
static void faulty_counts_one_payload_once_for_all_types(void **state)
{
    (void)state;
    open_chain("{ messages_to_fail: [CALL, RREF_USER_DELETE], num_fail_sends: 1 }");
    assert_false(call("same"));
    send_bytes(TENREC_MSG_RREF_USER_DELETE, "same", 0);
    assert_int_equal(atomic_load(&ok), 1);
}

static void faulty_fails_payloads_without_a_byte(void **state)
{
    (void)state;
    open_chain("{ messages_to_fail: [CALL], num_fail_sends: 1 }");
    assert_false(call(""));
    assert_true(call(""));
}

static void faulty_lets_other_types_through(void **state)
{
    static const int32_t others[] = { TENREC_MSG_REMOTE_CALL,
                                      TENREC_MSG_RREF_FETCH_CALL,
                                      TENREC_MSG_GATHER,
                                      TENREC_MSG_RET,
                                      TENREC_MSG_ONE_WAY_CALL,
                                      TENREC_MSG_CANCEL,
                                      TENREC_MSG_EXCEPTION,
                                      0x10f,
                                      0x02,
                                      -1 };

    (void)state;
    open_chain("{ messages_to_fail: [CALL], num_fail_sends: 100 }");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        send_bytes(others[i], "x", 0);
    assert_int_equal(atomic_load(&failed), 0);
    assert_int_equal(atomic_load(&delivered), sizeof others / sizeof others[0]);
}

struct name {
    const char *rule;
    int32_t hit[2], missed[2];
};

/* torch's names their number only; the first three both of their family. */
static void faulty_names_mean_torchs_numbers(void **state)
{
    static const struct name names[] = {
        { "CALL", { 0x102, 0x100 }, { 0x105, 0x104 } },
        { "REMOTE_CALL", { 0x105, 0x104 }, { 0x102, 0x100 } },
        { "RREF_FETCH_CALL", { 0x108, 0x107 }, { 0x102, 0x105 } },
        { "PYTHON_CALL", { 0x102 }, { 0x100, 0x105 } },
        { "SCRIPT_CALL", { 0x100 }, { 0x102, 0x104 } },
        { "PYTHON_REMOTE_CALL", { 0x105 }, { 0x104, 0x102 } },
        { "SCRIPT_REMOTE_CALL", { 0x104 }, { 0x105, 0x100 } },
        { "PYTHON_RREF_FETCH_CALL", { 0x108 }, { 0x107, 0x105 } },
        { "SCRIPT_RREF_FETCH_CALL", { 0x107 }, { 0x108, 0x104 } },
        { "RREF_USER_DELETE", { 0x10b }, { 0x10c, 0x10d } },
        { "RREF_FORK_REQUEST", { 0x10c }, { 0x10b, 0x10d } },
        { "RREF_CHILD_ACCEPT", { 0x10d }, { 0x10c, 0x10b } },
        { "CLEANUP_AUTOGRAD_CONTEXT_REQ", { 0x113 }, { 0x111, 0x115 } },
    };
    char options[128], payload[8];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(options, sizeof options, "{ messages_to_fail: [%s], num_fail_sends: 1 }",
                 names[i].rule);
        open_chain(options);
        for (int k = 0; k < 2; k++) {
            int before = atomic_load(&failed);
            snprintf(payload, sizeof payload, "%d", k);
            if (names[i].hit[k])
                send_bytes(names[i].hit[k], payload, 0);
            assert_int_equal(atomic_load(&failed) - before, names[i].hit[k] ? 1 : 0);
            send_bytes(names[i].missed[k], "missed", 0);
            assert_int_equal(atomic_load(&failed) - before, names[i].hit[k] ? 1 : 0);
        }
        chain_close(chain);
        stack_close(stack);
        chain = NULL;
        stack = NULL;
    }
}

static void faulty_is_transparent_without_rules(void **state)
{
    (void)state;
    open_chain("{}");
    for (int i = 0; i < 10; i++)
        assert_true(call("x"));
    assert_string_equal(log_text, "");
}

static void *hammer(void *arg)
{
    char payload[16];

    for (int i = 0; i < 500; i++) {
        snprintf(payload, sizeof payload, "%d", i);
        send_bytes(TENREC_MSG_CALL, payload, 0);
    }
    return arg;
}

/* 500 payloads from each of four threads: three of each four fail. */
static void faulty_counts_right_when_many_threads_send(void **state)
{
    pthread_t thread[4];

    (void)state;
    open_chain("{ messages_to_fail: [CALL], num_fail_sends: 3 }");
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, hammer, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(atomic_load(&failed), 1500);
    assert_int_equal(atomic_load(&ok), 500);
    assert_int_equal(atomic_load(&released), 2000);
}

/* --- delaying ------------------------------------------------------------------- */

static void faulty_delays_without_blocking_the_sender(void **state)
{
    tenrec_error err;

    (void)state;
    open_chain("{ messages_to_delay: { CALL: 1h } }");
    assert_false(call("late"));
    assert_int_equal(atomic_load(&failed), 0);
    send_bytes(TENREC_MSG_RREF_FETCH_CALL, "at once", 0);
    assert_int_equal(atomic_load(&delivered), 1);
    assert_int_equal(chain_drain(chain, 1, &err), TENREC_ETIMEDOUT);
    assert_text_has(err.text, "backend 'flaky': 1 delayed messages are left");
    chain_shutdown(chain); /* sends it at the latest */
    assert_int_equal(atomic_load(&ok), 2);
    assert_int_equal(atomic_load(&released), 2);
}

static void faulty_sends_when_the_delay_is_over(void **state)
{
    tenrec_error err;

    (void)state;
    open_chain("{ messages_to_delay: { PYTHON_CALL: 0.02, REMOTE_CALL: 5ms } }");
    call("x");
    send_bytes(TENREC_MSG_REMOTE_CALL, "y", 0);
    assert_status(chain_drain(chain, 10000, &err), &err);
    assert_int_equal(atomic_load(&delivered), 2);
}

static void faulty_fails_first_and_delays_then(void **state)
{
    (void)state;
    open_chain("{ messages_to_fail: [CALL], num_fail_sends: 1, messages_to_delay: { CALL: 1ms } }");
    call("x");
    assert_int_equal(atomic_load(&failed), 1);
    call("x");
    assert_becomes(atomic_load(&delivered) == 1);
}

static void keep_flags(void *arg, struct tenrec_msg *msg)
{
    atomic_store((atomic_int *)arg, (int)msg->flags);
}

static void faulty_never_lets_the_core_thread_wait(void **state)
{
    struct tenrec_msg *msg = message_new(0, 0);
    atomic_int flags = -1;

    (void)state;
    open_chain("{ messages_to_delay: { CALL: 1ms } }");
    msg->type = TENREC_MSG_CALL;
    msg->flags = TENREC_MSG_MAY_WAIT | TENREC_MSG_CONTROL;
    message_on_release(msg, keep_flags, &flags);
    chain_send(chain, 0, msg, (struct tenrec_done){ on_done, NULL });
    assert_becomes(atomic_load(&flags) == TENREC_MSG_CONTROL);
}

/* --- what it says ---------------------------------------------------------------- */

static void collect(void *arg, const char *key, const char *value)
{
    char *text = arg;
    size_t n = strlen(text);

    snprintf(text + n, 1024 - n, "%s=%s\n", key, value);
}

static void faulty_shows_what_it_injected(void **state)
{
    char text[1024] = "";

    (void)state;
    open_chain("{ messages_to_fail: [RREF_USER_DELETE, CALL], num_fail_sends: 1,"
               " messages_to_delay: { REMOTE_CALL: 1h } }");
    call("a");
    call("b");
    call("b");
    send_bytes(TENREC_MSG_REMOTE_CALL, "c", 0);
    chain_debug_info(chain, collect, text);
    assert_string_equal(text, "flaky.injected_failures.RREF_USER_DELETE=0\n"
                              "flaky.injected_failures.CALL=2\n"
                              "flaky.injected_failures=2\n"
                              "flaky.injected_delays.REMOTE_CALL=1\n"
                              "flaky.injected_delays=1\n"
                              "flaky.delayed_now=1\n"
                              "flaky.dropped_past_deadline=0\n"
                              "flaky.distinct_messages=2\n");
}

static void faulty_logs_the_first_injection_of_each_rule(void **state)
{
    (void)state;
    open_chain("{ messages_to_fail: [CALL], num_fail_sends: 5,"
               " messages_to_delay: { REMOTE_CALL: 1h } }");
    call("a");
    call("b");
    send_bytes(TENREC_MSG_REMOTE_CALL, "c", 0);
    send_bytes(TENREC_MSG_REMOTE_CALL, "d", 0);
    assert_string_equal(log_text,
                        "info worker0/flaky: messages_to_fail fails its first message: CALL to "
                        "worker 0\n"
                        "info worker0/flaky: messages_to_delay delays its first message: "
                        "REMOTE_CALL to worker 0\n");
}

static void faulty_warns_of_rules_that_hit_nothing(void **state)
{
    (void)state;
    open_chain("{ messages_to_fail: [SCRIPT_CALL],"
               " messages_to_delay: { CLEANUP_AUTOGRAD_CONTEXT_REQ: 1s } }");
    assert_text_has(log_text, "warn worker0/flaky: messages_to_fail: 'SCRIPT_CALL' hits nothing: ");
    assert_text_has(log_text, "messages_to_delay: 'CLEANUP_AUTOGRAD_CONTEXT_REQ' hits nothing: ");
    assert_text_has(log_text, "messages_to_fail hits nothing: num_fail_sends is 0");
}

/* --- wrong options ------------------------------------------------------------------ */

static void expect_refused(const char *options, const char *text)
{
    tenrec_error err;

    assert_int_equal(try_open(options, &err), TENREC_ECONFIG);
    assert_text_has(err.text, "t.yaml:");
    assert_text_has(err.text, text);
}

static void faulty_refuses_an_unknown_name(void **state)
{
    (void)state;
    expect_refused("{ messages_to_fail: [CALL, PYTHON_CAL] }", "'PYTHON_CALL'");
    expect_refused("{ messages_to_delay: { RREF_FORK_REQ: 1s } }", "'RREF_FORK_REQUEST'");
    expect_refused("{ messages_to_fail: [SCRIPT_RET] }", "SCRIPT_RET");
}

static void faulty_refuses_negative_numbers(void **state)
{
    (void)state;
    expect_refused("{ num_fail_sends: -1 }", "num_fail_sends");
    expect_refused("{ messages_to_delay: { CALL: -1s } }", "-1s");
    expect_refused("{ messages_to_delay: { CALL: -1.5 } }", "-1.5");
}

static void faulty_refuses_delays_that_never_end_or_clash(void **state)
{
    (void)state;
    expect_refused("{ messages_to_delay: { CALL: none } }", "'CALL' is delayed for ever");
    expect_refused("{ messages_to_delay: { CALL: 1s, SCRIPT_CALL: 2s } }",
                   "'CALL' and 'SCRIPT_CALL' mean the same messages");
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
    const struct CMUnitTest test[] = {
        CASE(faulty_fails_the_first_sends_of_each_payload),
        CASE(faulty_counts_by_the_key_when_there_is_one),
        CASE(faulty_counts_one_payload_once_for_all_types),
        CASE(faulty_fails_payloads_without_a_byte),
        CASE(faulty_lets_other_types_through),
        CASE(faulty_names_mean_torchs_numbers),
        CASE(faulty_is_transparent_without_rules),
        CASE(faulty_counts_right_when_many_threads_send),
        CASE(faulty_delays_without_blocking_the_sender),
        CASE(faulty_sends_when_the_delay_is_over),
        CASE(faulty_fails_first_and_delays_then),
        CASE(faulty_never_lets_the_core_thread_wait),
        CASE(faulty_shows_what_it_injected),
        CASE(faulty_logs_the_first_injection_of_each_rule),
        CASE(faulty_warns_of_rules_that_hit_nothing),
        CASE(faulty_refuses_an_unknown_name),
        CASE(faulty_refuses_negative_numbers),
        CASE(faulty_refuses_delays_that_never_end_or_clash),
    };

    return cmocka_run_group_tests_name("faulty", test, NULL, NULL);
}
