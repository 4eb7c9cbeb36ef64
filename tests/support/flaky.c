/* SPDX-License-Identifier: Apache-2.0 */
#include "flaky.h"

#include "core/backend/backend.h"
#include "core/base/loop.h"
#include "message_hooks.h"
#include "rpc/call/serve.h"

#include <pthread.h>
#include <stdlib.h>
#include <tenrec/backend.h>
#include <tenrec/config.h>
#include <tenrec/log.h>

struct chain *flaky_chain;
atomic_int flaky_ok, flaky_failed, flaky_delivered, flaky_released, flaky_disconnected;
char flaky_log[4096];
const char *flaky_plugin = "faulty";

static struct loop *loop;
static struct chain_config *stack;
static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER; /* guards last, order, newest and flaky_log */
static tenrec_error last;
static char order[4096];
static struct flaky_received newest;

static void append(char *text, size_t size, const char *what)
{
    size_t n = strlen(text);

    snprintf(text + n, size - n, "%s", what);
}

static void on_deliver(void *arg, tenrec_peer from, struct tenrec_msg *msg)
{
    char text[64];

    (void)arg, (void)from;
    pthread_mutex_lock(&lock);
    snprintf(text, sizeof text, "%s%.*s", *order ? " " : "", (int)msg->payload_len,
             (const char *)msg->payload);
    append(order, sizeof order, text);
    newest = (struct flaky_received){ msg->type, msg->id, msg->payload_len, { 0 } };
    if (msg->payload_len <= sizeof newest.payload)
        memcpy(newest.payload, msg->payload, msg->payload_len);
    msg->release(msg);
    pthread_mutex_unlock(&lock);
    atomic_fetch_add(&flaky_delivered, 1);
}

static void on_done(void *arg, const tenrec_error *err)
{
    (void)arg;
    if (err) {
        pthread_mutex_lock(&lock);
        last = *err;
        pthread_mutex_unlock(&lock);
    }
    atomic_fetch_add(err ? &flaky_failed : &flaky_ok, 1);
}

static void on_release(void *arg, struct tenrec_msg *msg)
{
    (void)arg, (void)msg;
    atomic_fetch_add(&flaky_released, 1);
}

static void on_log(void *arg, enum tenrec_log_level level, const char *part, const char *text)
{
    static const char *const names[] = { "error", "warn", "info", "debug", "trace" };
    char line[512];

    (void)arg;
    snprintf(line, sizeof line, "%s %s: %s\n", names[level], part, text);
    pthread_mutex_lock(&lock);
    append(flaky_log, sizeof flaky_log, line);
    pthread_mutex_unlock(&lock);
}

/* ---- the mirror ---------------------------------------------------------------- */

static void mirror_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                        struct tenrec_done done)
{
    struct tenrec_msg *copy = self->host->msg_new(self, msg->payload_len, 0);

    assert_non_null(copy);
    copy->type = msg->type;
    copy->id = msg->id;
    copy->route = msg->route;
    memcpy(copy->payload, msg->payload, msg->payload_len);
    msg->release(msg);
    tenrec_done_succeed(done);
    self->host->deliver_outer(self, to, copy);
}

/* Only worker 2 is connected. */
static tenrec_status mirror_disconnect(struct tenrec_agent *self, tenrec_peer peer,
                                       tenrec_error *err)
{
    (void)self;
    if (peer != 2)
        return tenrec_fail(err, TENREC_EPEER_UNKNOWN, "no connection to worker %d", (int)peer);
    atomic_fetch_add(&flaky_disconnected, 1);
    return TENREC_OK;
}

static const struct tenrec_agent_ops mirror_ops = {
    .size = sizeof mirror_ops,
    .send = mirror_send,
    .disconnect = mirror_disconnect,
};

static tenrec_status mirror_construct(void *opts, tenrec_error *err)
{
    (void)opts, (void)err;
    return TENREC_OK;
}

static tenrec_status mirror_init(const struct tenrec_init *in, struct tenrec_agent *self,
                                 tenrec_error *err)
{
    (void)in, (void)err;
    self->ops = &mirror_ops;
    return TENREC_OK;
}

static const struct tenrec_plugin mirror = {
    TENREC_PLUGIN_HEADER,
    .name = "mirror",
    .version = "1.0",
    .summary = "Brings every message back.",
};

/* ---- life ------------------------------------------------------------------------ */

void flaky_set_up(void)
{
    tenrec_error err;

    atomic_store(&flaky_ok, 0);
    atomic_store(&flaky_failed, 0);
    atomic_store(&flaky_delivered, 0);
    atomic_store(&flaky_released, 0);
    atomic_store(&flaky_disconnected, 0);
    flaky_log[0] = order[0] = '\0';
    stack = NULL;
    flaky_chain = NULL;
    tenrec_log_set_callback(on_log, NULL);
    tenrec_log_set_level(TENREC_LOG_INFO);
    if (!tenrec_backend_registered("mirror"))
        assert_status(tenrec_register_backend(&mirror, mirror_construct, mirror_init, &err), &err);
    assert_status(loop_open(&loop, &err), &err);
}

void flaky_close(void)
{
    chain_close(flaky_chain);
    chain_config_close(stack);
    flaky_chain = NULL;
    stack = NULL;
}

void flaky_tear_down(void)
{
    flaky_close();
    loop_close(loop);
    tenrec_log_set_callback(NULL, NULL);
}

tenrec_status flaky_try(const char *options, tenrec_error *err)
{
    struct tenrec_config *config;
    char text[2048];
    tenrec_status st;

    snprintf(text, sizeof text,
             "backend: flaky\nbackends:\n  here: { plugin: mirror }\n"
             "  flaky:\n    plugin: %s\n    wraps: here\n    options: %s\n",
             flaky_plugin, options);
    st = tenrec_config_parse(text, "t.yaml", &config, err);
    if (st != TENREC_OK)
        return st;
    st = chain_config_open(config, &stack, err);
    tenrec_config_drop(config);
    return st;
}

tenrec_status flaky_start(const char *options, tenrec_error *err)
{
    const struct chain_identity id = { .world = 3, .name = "worker0" };
    const struct chain_user user = { .deliver = on_deliver,
                                     .place = message_place_for,
                                     .exception_new = answer_exception_new };
    static const struct tenrec_member member[] = { { sizeof *member, 0, 0, "worker0", "" },
                                                   { sizeof *member, 1, 0, "worker1", "" },
                                                   { sizeof *member, 2, 0, "worker2", "" } };
    const struct chain_layer *layer;
    tenrec_status st = flaky_try(options, err);
    size_t n;

    if (st != TENREC_OK)
        return st;
    layer = chain_config_layers(stack, &n);
    st = chain_open(layer, n, &id, loop, &user, &flaky_chain, err);
    if (st != TENREC_OK)
        return st;
    return chain_start(flaky_chain, member, 3, err);
}

void flaky_open(const char *options)
{
    tenrec_error err;

    assert_status(flaky_start(options, &err), &err);
}

void flaky_send_msg(tenrec_peer to, struct tenrec_msg *msg)
{
    message_on_release(msg, on_release, NULL);
    chain_send(flaky_chain, to, msg, (struct tenrec_done){ on_done, NULL });
}

void flaky_send_to(tenrec_peer to, int32_t type, const char *payload, uint32_t key_len)
{
    struct tenrec_msg *msg = message_new(strlen(payload), 0);

    assert_non_null(msg);
    msg->type = type;
    memcpy(msg->payload, payload, strlen(payload));
    msg->key_len = key_len;
    flaky_send_msg(to, msg);
}

void flaky_send(int32_t type, const char *payload)
{
    flaky_send_to(0, type, payload, 0);
}

bool flaky_call(const char *payload)
{
    int before = atomic_load(&flaky_ok);

    flaky_send(TENREC_MSG_CALL, payload);
    return atomic_load(&flaky_ok) > before;
}

tenrec_error flaky_last(void)
{
    tenrec_error copy;

    pthread_mutex_lock(&lock);
    copy = last;
    pthread_mutex_unlock(&lock);
    return copy;
}

void flaky_order(char *buf, size_t size)
{
    pthread_mutex_lock(&lock);
    snprintf(buf, size, "%s", order);
    pthread_mutex_unlock(&lock);
}

struct flaky_received flaky_newest(void)
{
    struct flaky_received copy;

    pthread_mutex_lock(&lock);
    copy = newest;
    pthread_mutex_unlock(&lock);
    return copy;
}

struct info {
    char *buf;
    size_t size;
};

static void collect(void *arg, const char *key, const char *value)
{
    const struct info *info = arg;
    char line[256];

    snprintf(line, sizeof line, "%s=%s\n", key, value);
    append(info->buf, info->size, line);
}

void flaky_info(char *buf, size_t size)
{
    buf[0] = '\0';
    chain_debug_info(flaky_chain, collect, &(struct info){ buf, size });
}

long flaky_number(const char *key)
{
    char text[4096], line[128];
    const char *at;

    flaky_info(text, sizeof text);
    snprintf(line, sizeof line, "flaky.%s=", key);
    at = strstr(text, line);
    if (!at)
        fail_msg("no '%s' in:\n%s", key, text);
    return atol(at + strlen(line));
}
