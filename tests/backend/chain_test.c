/* SPDX-License-Identifier: Apache-2.0 */
#include "core/backend/backend.h"

#include "../support/message_hooks.h"
#include "../testing.h"
#include "core/base/clock.h"
#include "core/base/loop.h"
#include "core/plugin/plugin.h"
#include "recorder.h"
#include "rpc/call/serve.h"
#include "rpc/value/codec.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <tenrec/log.h>
#include <tenrec/plugin.h>

static struct loop *loop;
static atomic_int delivered, told_ok, told_error;
static atomic_int last_error;

static void open_loop(void)
{
    tenrec_error err;

    assert_status(loop_open(&loop, &err), &err);
}

static void close_loop(void)
{
    loop_close(loop);
}

static void reset(void)
{
    atomic_store(&delivered, 0);
    atomic_store(&told_ok, 0);
    atomic_store(&told_error, 0);
    recorder_events();
}

static void on_deliver(void *arg, tenrec_peer from, struct tenrec_msg *msg)
{
    (void)arg, (void)from;
    recorder_note("user", "deliver");
    msg->release(msg);
    atomic_fetch_add(&delivered, 1);
}

static void on_done(void *arg, const tenrec_error *err)
{
    (void)arg;
    if (err)
        atomic_store(&last_error, err->code);
    atomic_fetch_add(err ? &told_error : &told_ok, 1);
}

static const struct tenrec_done done = { on_done, NULL };
static const struct chain_user user = { .deliver = on_deliver, .place = message_place_for };
static const struct chain_identity identity = { .me = 0, .world = 1, .name = "worker0" };
static const struct tenrec_member member = { sizeof member, 0, 0, "worker0", "" };

/* Layers of recording agents named a, b, ...: the last one is at the wire. */
static size_t layers(struct chain_layer *layer, const struct recorder *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        layer[i] = (struct chain_layer){ r[i].tag, "", recorder_backend(i + 1 < n), &r[i] };
    return n;
}

static struct chain *open_chain(const struct chain_layer *layer, size_t n)
{
    struct chain *c;
    tenrec_error err;

    assert_status(chain_open(layer, n, &identity, loop, &user, &c, &err), &err);
    return c;
}

static struct tenrec_msg *request(void)
{
    struct tenrec_msg *msg = message_new(0, 0);

    assert_non_null(msg);
    msg->type = TENREC_MSG_CALL;
    return msg;
}

static const struct recorder three[] = { { "a", &recorder_ops },
                                         { "b", &recorder_ops },
                                         { "c", &recorder_ops } };

TEST_WITH(chain_lives_from_the_wire_outwards, reset, NULL)
{
    struct chain_layer layer[3];
    struct chain *c = open_chain(layer, layers(layer, three, 3));
    tenrec_error err;

    assert_string_equal(recorder_events(), "c.init b.init a.init");
    assert_string_equal(chain_address(c), "a");
    assert_status(chain_start(c, &member, 1, &err), &err);
    assert_string_equal(recorder_events(), "c.start b.start a.start");
    chain_shutdown(c);
    chain_shutdown(c);
    assert_string_equal(recorder_events(), "a.shutdown b.shutdown c.shutdown");
    chain_close(c);
    assert_string_equal(recorder_events(), "a.destroy b.destroy c.destroy");
}

TEST_WITH(chain_send_goes_in_and_deliver_out, reset, NULL)
{
    struct chain_layer layer[3];
    struct chain *c = open_chain(layer, layers(layer, three, 3));
    tenrec_error err;

    assert_status(chain_start(c, &member, 1, &err), &err);
    recorder_events();
    chain_send(c, 0, request(), done);
    assert_string_equal(recorder_events(), "a.send b.send c.send b.deliver a.deliver user.deliver");
    assert_int_equal(atomic_load(&told_ok), 1);
    chain_close(c);
}

TEST_WITH(chain_skips_missing_ops, reset, NULL)
{
    const struct recorder some[] = { { "a", &recorder_no_ops },
                                     { "b", &recorder_ops },
                                     { "c", &recorder_no_ops },
                                     { "d", &recorder_ops } };
    struct chain_layer layer[4];
    struct chain *c = open_chain(layer, layers(layer, some, 4));
    const struct tenrec_wait wait = { .size = sizeof wait };
    tenrec_error err;

    assert_status(chain_start(c, &member, 1, &err), &err);
    assert_string_equal(chain_address(c), "b");
    recorder_events();
    chain_send(c, 0, request(), done);
    assert_string_equal(recorder_events(), "b.send d.send b.deliver user.deliver");
    assert_int_equal(chain_poll(c, 0, &wait), TENREC_OK);
    assert_string_equal(recorder_events(), "b.poll");
    assert_int_equal(chain_lead(c, &wait), TENREC_OK);
    assert_string_equal(recorder_events(), "b.lead");
    chain_close(c);
}

TEST_WITH(chain_tells_all_agents_of_members_and_waits, reset, NULL)
{
    struct chain_layer layer[3];
    struct chain *c = open_chain(layer, layers(layer, three, 3));
    tenrec_error err;

    assert_status(chain_start(c, &member, 1, &err), &err);
    recorder_events();
    chain_member_joined(c, &member);
    chain_member_left(c, 0);
    chain_resume(c);
    assert_status(chain_disconnect(c, 0, &err), &err);
    assert_status(chain_drain(c, 100, &err), &err);
    assert_string_equal(recorder_events(),
                        "c.joined b.joined a.joined a.left b.left c.left a.resume b.resume "
                        "c.resume a.disconnect b.disconnect c.disconnect a.drain b.drain c.drain");
    chain_close(c);
}

TEST_WITH(chain_open_undoes_made_agents_when_a_later_agent_fails, reset, NULL)
{
    const struct recorder some[] = { { "a", &recorder_ops },
                                     { "b", &recorder_ops, .fail_init = true },
                                     { "c", &recorder_ops } };
    struct chain_layer layer[3];
    struct chain *c;
    tenrec_error err;

    layers(layer, some, 3);
    layer[1].where = "x.yaml:3:4";
    assert_int_equal(chain_open(layer, 3, &identity, loop, &user, &c, &err), TENREC_EOS);
    assert_string_equal(err.text, "x.yaml:3:4: backend 'b': asked not to init");
    assert_string_equal(recorder_events(), "c.init b.init c.destroy");
}

TEST_WITH(chain_start_stops_started_agents_when_an_agent_fails, reset, NULL)
{
    const struct recorder some[] = { { "a", &recorder_ops },
                                     { "b", &recorder_ops, .fail_start = true },
                                     { "c", &recorder_ops } };
    struct chain_layer layer[3];
    struct chain *c = open_chain(layer, layers(layer, some, 3));
    tenrec_error err;

    recorder_events();
    assert_int_equal(chain_start(c, &member, 1, &err), TENREC_ECONNECT);
    assert_string_equal(err.text, "backend 'b': asked not to start");
    assert_string_equal(recorder_events(), "c.start b.start c.shutdown");
    chain_close(c);
    assert_string_equal(recorder_events(), "a.destroy b.destroy c.destroy");
}

TEST_WITH(chain_start_refuses_a_second_time, reset, NULL)
{
    struct chain_layer layer[3];
    struct chain *c = open_chain(layer, layers(layer, three, 3));
    tenrec_error err;

    assert_status(chain_start(c, &member, 1, &err), &err);
    assert_int_equal(chain_start(c, &member, 1, &err), TENREC_EINVAL);
    chain_close(c);
}

TEST_WITH(chain_close_stops_nothing_that_never_started, reset, NULL)
{
    struct chain_layer layer[3];
    struct chain *c = open_chain(layer, layers(layer, three, 3));

    recorder_events();
    chain_close(c);
    assert_string_equal(recorder_events(), "a.destroy b.destroy c.destroy");
}

TEST_WITH(chain_send_fails_when_the_chain_does_not_run, reset, NULL)
{
    struct chain_layer layer[3];
    struct chain *c = open_chain(layer, layers(layer, three, 3));
    const struct tenrec_wait wait = { .size = sizeof wait };
    tenrec_error err;

    chain_send(c, 0, request(), done);
    assert_int_equal(atomic_load(&last_error), TENREC_ESHUTDOWN);
    assert_status(chain_start(c, &member, 1, &err), &err);
    chain_shutdown(c);
    recorder_events();
    chain_send(c, 0, request(), done);
    assert_int_equal(atomic_load(&told_error), 2);
    assert_int_equal(chain_poll(c, 0, &wait), TENREC_EUNSUPPORTED);
    assert_int_equal(chain_lead(c, &wait), TENREC_EUNSUPPORTED);
    assert_int_equal(chain_disconnect(c, 0, &err), TENREC_ESHUTDOWN);
    assert_string_equal(recorder_events(), "");
    chain_close(c);
}

TEST_WITH(chain_open_refuses_a_wrapper_at_the_wire, reset, NULL)
{
    const struct recorder r = { "alone", &recorder_ops };
    const struct chain_layer layer = { "alone", "", recorder_backend(true), &r };
    struct chain *c;
    tenrec_error err;

    assert_int_equal(chain_open(&layer, 1, &identity, loop, &user, &c, &err), TENREC_ECONFIG);
    assert_text_has(err.text, "backend 'alone': plugin 'recorder' wraps another backend");
}

TEST_WITH(chain_open_refuses_wraps_of_a_plugin_that_is_no_wrapper, reset, NULL)
{
    const struct recorder r = { "x", &recorder_ops };
    const struct chain_layer layer[] = { { "x", "", recorder_backend(false), &r },
                                         { "y", "", recorder_backend(false), &r } };
    struct chain *c;
    tenrec_error err;

    assert_int_equal(chain_open(layer, 2, &identity, loop, &user, &c, &err), TENREC_ECONFIG);
    assert_text_has(err.text, "backend 'x': plugin 'recorder_wire' wraps nothing");
}

static void expect_bad_ops(const struct tenrec_agent_ops *ops, const char *text)
{
    const struct recorder r = { "x", ops };
    const struct chain_layer layer = { "x", "", recorder_backend(false), &r };
    struct chain *c;
    tenrec_error err;

    assert_int_equal(chain_open(&layer, 1, &identity, loop, &user, &c, &err), TENREC_EPLUGIN);
    assert_text_has(err.text, text);
}

TEST_WITH(chain_open_refuses_agents_without_ops, reset, NULL)
{
    const struct tenrec_agent_ops empty = { .size = 0 }, huge = { .size = 100000 };

    expect_bad_ops(NULL, "the plugin's init set no ops");
    expect_bad_ops(&empty, "the agent's ops have 0 bytes");
    expect_bad_ops(&huge, "the agent's ops have 100000 bytes");
    expect_bad_ops(&recorder_no_ops, "must have a send");
}

static void find_tag(void *arg, const char *key, const char *value)
{
    char *text = arg;
    size_t n = strlen(text);

    snprintf(text + n, 256 - n, "%s=%s ", key, value);
}

TEST_WITH(chain_debug_info_names_each_link, reset, NULL)
{
    struct chain_layer layer[3];
    struct chain *c = open_chain(layer, layers(layer, three, 3));
    char text[256] = "";

    chain_debug_info(c, find_tag, text);
    assert_string_equal(text, "a.tag=a b.tag=b c.tag=c ");
    assert_int_equal(chain_depth(c), 3);
    assert_string_equal(chain_name(c, 1), "b");
    assert_string_equal(chain_plugin(c, 2)->name, "recorder_wire");
    assert_int_equal(chain_innermost_flags(c), TENREC_PLUGIN_LOOPBACK_ONLY);
    chain_close(c);
}

/* --- real files ------------------------------------------------------------ */

static struct plugin *load(const char *name)
{
    struct plugin *b;
    tenrec_error err;
    char path[512];

    snprintf(path, sizeof path, FIXTURES "/%s.so", name);
    assert_status(plugin_get(path, &b, &err), &err);
    plugin_put(b);
    return b;
}

TEST_WITH(chain_passes_ops_unknown_to_an_old_wrapper, reset, NULL)
{
    struct chain_layer layer[3];
    struct chain *c;
    tenrec_error err;
    char text[256] = "";

    layers(layer, three, 3);
    layer[1] = (struct chain_layer){ "old", "", load("old_wrapper"), NULL };
    c = open_chain(layer, 3);
    assert_status(chain_start(c, &member, 1, &err), &err);
    recorder_events();
    chain_send(c, 0, request(), done);
    assert_string_equal(recorder_events(), "a.send c.send a.deliver user.deliver");
    chain_debug_info(c, find_tag, text);
    assert_string_equal(text, "a.tag=a c.tag=c ");
    assert_status(chain_drain(c, 10, &err), &err);
    chain_close(c);
}

TEST_WITH(chain_start_stops_the_agents_inside_a_bad_starter, reset, NULL)
{
    struct chain_layer layer[3];
    struct chain *c;
    tenrec_error err;

    layers(layer, three, 3);
    layer[0] = (struct chain_layer){ "dead", "", load("bad_start"), NULL };
    c = open_chain(layer, 3);
    recorder_events();
    assert_int_equal(chain_start(c, &member, 1, &err), TENREC_ECONNECT);
    assert_string_equal(err.text, "backend 'dead': the licence server does not answer");
    assert_string_equal(recorder_events(), "c.start b.start b.shutdown c.shutdown");
    chain_close(c);
}

/* --- host services ---------------------------------------------------------- */

/* The wire's agent, through which a test plays the plugin. */
static struct tenrec_agent *wire;

static tenrec_status catch_start(struct tenrec_agent *self, const struct tenrec_member *m,
                                 uint32_t n, tenrec_error *err)
{
    (void)m, (void)n, (void)err;
    wire = self;
    return TENREC_OK;
}

static void eat(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                struct tenrec_done told)
{
    (void)self, (void)to;
    msg->release(msg);
    tenrec_done_succeed(told);
}

static const struct tenrec_agent_ops catching = { .size = sizeof catching,
                                                  .start = catch_start,
                                                  .send = eat };

static struct chain *open_caught(const struct chain_user *above)
{
    static const struct recorder r = { "w", &catching };
    const struct chain_layer layer = { "w", "", recorder_backend(false), &r };
    struct chain *c;
    tenrec_error err;

    assert_status(chain_open(&layer, 1, &identity, loop, above, &c, &err), &err);
    assert_status(chain_start(c, &member, 1, &err), &err);
    return c;
}

TEST_WITH(host_accepts_when_the_user_does_not_say, reset, NULL)
{
    struct chain *c = open_caught(&user);
    struct tenrec_msg *msg = wire->host->msg_new(wire, 10, 1);
    tenrec_error err;

    assert_non_null(msg);
    msg->tensors->bytes = 100;
    assert_status(wire->host->place(wire, 0, msg, &err), &err);
    memset(msg->tensors->data, 1, 100);
    assert_true(wire->host->accepts(wire));
    wire->host->deliver_outer(wire, 0, msg);
    assert_int_equal(atomic_load(&delivered), 1);
    chain_close(c);
}

static bool no(void *arg)
{
    (void)arg;
    return false;
}

static void lost(void *arg, tenrec_peer peer, const tenrec_error *why)
{
    snprintf(arg, 512, "%d: %s", peer, why->text);
}

static tenrec_status no_place(void *arg, tenrec_peer from, struct tenrec_msg *msg,
                              tenrec_error *err)
{
    (void)arg, (void)from, (void)msg;
    return tenrec_fail(err, TENREC_ETOOBIG, "too big");
}

TEST_WITH(host_asks_the_user_of_the_chain, reset, NULL)
{
    char text[512] = "";
    const struct chain_user above = { .deliver = on_deliver,
                                      .place = no_place,
                                      .accepts = no,
                                      .peer_lost = lost,
                                      .caller_lost = lost,
                                      .arg = text };
    struct chain *c = open_caught(&above);
    struct tenrec_msg *msg = wire->host->msg_new(wire, 0, 1);
    tenrec_error err;

    assert_false(wire->host->accepts(wire));
    assert_int_equal(wire->host->place(wire, 0, msg, &err), TENREC_ETOOBIG);
    tenrec_fail(&err, TENREC_EPEER_LOST, "reset");
    wire->host->peer_lost(wire, 3, &err);
    assert_string_equal(text, "3: reset");
    wire->host->caller_lost(wire, 2, &err);
    assert_string_equal(text, "2: reset");
    msg->release(msg);
    chain_close(c);
}

static void count_log(void *arg, enum tenrec_log_level level, const char *part, const char *text)
{
    if (level == TENREC_LOG_DEBUG && strcmp(part, "worker0/w") == 0 && strstr(text, "not run"))
        ++*(int *)arg;
}

TEST_WITH(host_drops_messages_delivered_after_shutdown, reset, NULL)
{
    struct chain *c = open_caught(&user);
    int lines = 0;

    chain_shutdown(c);
    tenrec_log_set_callback(count_log, &lines);
    tenrec_log_set_level(TENREC_LOG_DEBUG);
    wire->host->deliver_outer(wire, 0, wire->host->msg_new(wire, 0, 0));
    tenrec_log_set_callback(NULL, NULL);
    tenrec_log_set_level(TENREC_LOG_WARN);
    assert_int_equal(atomic_load(&delivered), 0);
    assert_int_equal(lines, 1);
    chain_close(c);
}

static void count_one(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

TEST_WITH(host_after_runs_at_shutdown_at_the_latest, reset, NULL)
{
    struct chain *c = open_caught(&user);
    atomic_int n = 0;

    assert_int_equal(wire->host->after(wire, 1, count_one, &n), TENREC_OK);
    assert_becomes(atomic_load(&n) == 1);
    assert_int_equal(wire->host->after(wire, 3600000, count_one, &n), TENREC_OK);
    chain_shutdown(c);
    assert_int_equal(atomic_load(&n), 2);
    assert_int_equal(wire->host->after(wire, 0, count_one, &n), TENREC_ESHUTDOWN);
    chain_close(c);
}

TEST_WITH(chain_drain_waits_for_held_sends, reset, NULL)
{
    struct chain *c = open_caught(&user);
    atomic_int n = 0;
    tenrec_error err;

    assert_int_equal(wire->host->hold(wire, clock_deadline_ms(20), true, count_one, &n), TENREC_OK);
    assert_status(chain_drain(c, 10000, &err), &err);
    assert_int_equal(atomic_load(&n), 1);
    assert_int_equal(wire->host->hold(wire, CLOCK_NEVER, true, count_one, &n), TENREC_OK);
    assert_int_equal(chain_drain(c, 1, &err), TENREC_ETIMEDOUT);
    assert_string_equal(err.text, "backend 'w': 1 messages are still held after 1 ms");
    chain_shutdown(c);
    assert_int_equal(atomic_load(&n), 2);
    assert_int_equal(wire->host->hold(wire, 0, true, count_one, &n), TENREC_ESHUTDOWN);
    chain_close(c);
}

/* An EXCEPTION of `why` for a request with this payload; the caller drops it. */
static struct tenrec_msg *exception_for(const char *payload, const tenrec_error *why)
{
    struct tenrec_msg *got = message_new(strlen(payload), 0), *msg;

    assert_non_null(got);
    memcpy(got->payload, payload, strlen(payload));
    got->type = TENREC_MSG_CALL;
    got->id = 77;
    got->route = (struct tenrec_route){ 3, 4 };
    msg = wire->host->exception_new(wire, got, why);
    got->release(got);
    assert_non_null(msg);
    assert_int_equal(msg->type, TENREC_MSG_EXCEPTION);
    assert_int_equal(msg->id, 77);
    assert_int_equal(msg->route.pipe, 3);
    assert_int_equal(msg->route.generation, 4);
    return msg;
}

TEST_WITH(host_exception_has_the_form_of_the_message_that_it_answers, reset, NULL)
{
    const struct chain_user above = { .deliver = on_deliver,
                                      .exception_new = answer_exception_new };
    struct chain *c = open_caught(&above);
    struct tenrec_msg *msg;
    tenrec_error why, read;

    tenrec_fail(&why, TENREC_ETOOBIG, "a pumpkin");
    msg = exception_for("\xd9\xd9\xf7\x01", &why);
    codec_read_error(msg, &read);
    assert_int_equal(read.code, TENREC_ETOOBIG);
    assert_string_equal(read.text, "a pumpkin");
    msg->release(msg);
    msg = exception_for("", &why);
    assert_int_equal(msg->payload_len, 9);
    assert_memory_equal(msg->payload, "a pumpkin", 9);
    msg->release(msg);
    chain_close(c);
    c = open_caught(&user); /* which knows no form */
    msg = exception_for("\xd9\xd9\xf7\x01", &why);
    assert_int_equal(msg->payload_len, 9);
    assert_memory_equal(msg->payload, "a pumpkin", 9);
    msg->release(msg);
    chain_close(c);
}

static void *hammer(void *arg)
{
    for (int i = 0; i < 1000; i++)
        chain_send(arg, 0, request(), done);
    return NULL;
}

TEST_WITH(chain_shutdown_completes_each_concurrent_send_once, reset, NULL)
{
    struct chain *c = open_caught(&user);
    pthread_t thread[3];

    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, hammer, c), 0);
    assert_becomes(atomic_load(&told_ok) > 100);
    chain_shutdown(c);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(atomic_load(&told_ok) + atomic_load(&told_error), 3000);
    chain_close(c);
}

int main(void)
{
    return testing_run(open_loop, close_loop);
}
