/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/world.h"

#include "conformance/expect.h"
#include "core/backend/backend.h"
#include "core/base/clock.h"
#include "core/base/loop.h"
#include "core/plugin/plugin.h"
#include "security/proof/security.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <tenrec/agent.h>
#include <tenrec/config.h>

#define TOKEN UINT64_C(0x636f6e7472616374) /* of worker 0; each has its own */

static struct loop *loop;
static struct chain_config *stack;
static struct security *security;

/* --- the user of a chain --------------------------------------------------- */

static void world_answer(struct side *k, tenrec_peer to, struct tenrec_msg *msg)
{
    struct tenrec_msg *reply = letter_new(msg->payload_len, 0);

    expect_here(reply);

    reply->type = TENREC_MSG_RET;
    reply->id = msg->id;
    reply->route = msg->route;
    if (msg->payload_len)
        memcpy(reply->payload, msg->payload, msg->payload_len);
    msg->release(msg);
    chain_send(k->chain, to, reply, (struct tenrec_done){ 0 });
}

/* A message that the plugin makes itself ends in its own memory, or in another heap. */
static void world_check_maker(struct tenrec_msg *msg)
{
    static _Atomic(void (*)(struct tenrec_msg *)) of_core;
    struct tenrec_msg *sample;

    if (letter_is(msg)) {
        if (msg->n_tensors && letter_count_place(msg, 0) != 1) {
            expect_of_last("AG-26");
            expect_fail("place was called %d times for a message with tensors",
                        letter_count_place(msg, 0));
        }
        return;
    }
    if (!atomic_load(&of_core)) {
        expect_here(sample = message_new(0, 0));
        atomic_store(&of_core, sample->release);
        sample->release(sample);
    }
    if (msg->n_tensors || msg->release != atomic_load(&of_core)) {
        expect_of_last("AG-24");
        expect_fail("a message is delivered that host->msg_new did not make");
    }
}

static void on_deliver(void *arg, tenrec_peer from, struct tenrec_msg *msg)
{
    struct side *k = arg;

    world_check_maker(msg);
    atomic_fetch_add(&k->n_delivered, 1);
    if (atomic_load(&k->answers) && (msg->type & TENREC_MSG_REQUEST_BIT)) {
        world_answer(k, from, msg);
        return;
    }
    if (atomic_load(&k->discards)) {
        msg->release(msg);
        return;
    }
    pthread_mutex_lock(&k->lock);
    k->got = realloc(k->got, (k->n_got + 1) * sizeof *k->got);
    k->from = realloc(k->from, (k->n_got + 1) * sizeof *k->from);
    k->got[k->n_got] = msg;
    k->from[k->n_got++] = from;
    atomic_store(&k->n_listed, (uint32_t)k->n_got);
    pthread_mutex_unlock(&k->lock);
    if (atomic_load(&k->wake_fd) > 0)
        eventfd_write(atomic_load(&k->wake_fd), 1);
}

static tenrec_status on_place(void *arg, tenrec_peer from, struct tenrec_msg *msg,
                              tenrec_error *err)
{
    struct side *k = arg;
    uint32_t begin = 0;

    (void)from;
    if (!letter_is(msg)) {
        expect_of_last("AG-24");
        expect_fail("place is called for a message that host->msg_new did not make");
    }
    letter_count_place(msg, 1);
    atomic_fetch_add(&k->placed, 1);
    atomic_store(&k->placed_flags, msg->flags);
    if (msg->payload_len >= sizeof begin)
        memcpy(&begin, msg->payload, sizeof begin);
    atomic_store(&k->placed_begin, begin);
    if (atomic_load(&k->no_memory))
        return tenrec_fail(err, TENREC_ENOMEM, "asked to have no memory");
    if (k->memory) {
        msg->tensors->data = k->memory;
        msg->tensors->device = (struct tenrec_device){ TENREC_CPU, 0 };
        return TENREC_OK;
    }
    return letter_place(msg, err);
}

static bool on_accepts(void *arg)
{
    return !atomic_load(&((struct side *)arg)->refuses);
}

static void on_lost(void *arg, tenrec_peer peer, const tenrec_error *why)
{
    (void)peer;
    if (why && why->text[0])
        atomic_fetch_add(&((struct side *)arg)->lost, 1);
}

static void on_caller_lost(void *arg, tenrec_peer peer, const tenrec_error *why)
{
    (void)why;
    if (peer >= 0)
        atomic_fetch_add(&((struct side *)arg)->callers_lost, 1);
}

/* --- life ------------------------------------------------------------------- */

struct starter {
    struct chain *chain;
    const struct tenrec_member *member;
    uint32_t n;
    tenrec_status status;
    tenrec_error err;
};

static void *start_one(void *arg)
{
    struct starter *s = arg;

    s->status = chain_start(s->chain, s->member, s->n, &s->err);
    return NULL;
}

/* The demands of the config, or of the mode that is named with a new secret. */
static struct security *world_security(struct tenrec_config *config, const char *mode)
{
    struct secret *secret;
    struct security *s;
    tenrec_error err;

    if (!mode) {
        expect_ok(security_open(config, CLOCK_NEVER, &s, &err), &err,
                  "opening the section security");
        return s;
    }
    expect_ok(tenrec_config_set(config, "security.mode", mode, &err), &err,
              "setting the security mode");
    expect_ok(secret_draw(&secret, &err), &err, "drawing a secret");
    expect_ok(security_open_with(config, secret, "tenrec conformance", &s, &err), &err,
              "opening the section security");
    secret_drop(secret);
    return s;
}

/* At the same time, as real workers do. */
static void start_all(struct world *w)
{
    struct starter s[WORLD_MAX] = { { .n = 0 } };
    pthread_t thread[WORLD_MAX] = { 0 };

    for (int i = 0; i < w->n; i++) {
        s[i] = (struct starter){ .chain = w->worker[i].chain, w->member, (uint32_t)w->n };
        expect_here(pthread_create(&thread[i], NULL, start_one, &s[i]) == 0);
    }
    for (int i = 0; i < w->n; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < w->n; i++)
        expect_ok(s[i].status, &s[i].err, "start");
}

static void open_worker(struct world *w, int i)
{
    struct side *k = &w->worker[i];
    const struct chain_user user = { .deliver = on_deliver,
                                     .place = on_place,
                                     .msg_new = letter_new,
                                     .accepts = on_accepts,
                                     .peer_lost = on_lost,
                                     .caller_lost = on_caller_lost,
                                     .arg = k };
    struct chain_identity id = { .me = i,
                                 .world = (uint32_t)w->n,
                                 .name = k->name,
                                 .token = TOKEN + (uint64_t)i,
                                 .guard = &security->guard };
    const struct chain_layer *layer;
    tenrec_error err;
    size_t n;

    k->id = i;
    snprintf(k->name, sizeof k->name, "worker%d", i);
    id.incarnation = 1000 + (uint64_t)i;
    pthread_mutex_init(&k->lock, NULL);
    layer = chain_config_layers(stack, &n);
    layer = spy_insert(layer, &n);
    expect_ok(chain_open(layer, n, &id, loop, &user, &k->chain, &err), &err, "the init");
}

void world_begin(const char *text, const char *path, const char *mode)
{
    struct tenrec_config *config;
    tenrec_error err;
    tenrec_status st = text ? tenrec_config_parse(text, path, &config, &err)
                            : tenrec_config_load(path, &config, &err);

    if (!st)
        st = chain_config_open(config, &stack, &err);
    if (st)
        expect_unusable(&err);
    security = world_security(config, mode);
    tenrec_config_drop(config);
    /* The first loop of a process opens the pipe for signals that libuv keeps. */
    expect_ok(loop_open(&loop, &err), &err, "the start of the core's loop");
    loop_close(loop);
}

void world_end(void)
{
    chain_config_close(stack);
    security_drop(security);
}

void world_start(struct world *w, int n)
{
    tenrec_error err;

    *w = (struct world){ .n = n };
    expect_of("AG-8");
    expect_ok(loop_open(&loop, &err), &err, "the start of the core's loop");
    for (int i = 0; i < n; i++)
        open_worker(w, i);
    for (int i = 0; i < n; i++)
        w->member[i] = (struct tenrec_member){ .size = sizeof w->member[i],
                                               .id = i,
                                               .incarnation = 1000 + (uint64_t)i,
                                               .name = w->worker[i].name,
                                               .address = chain_address(w->worker[i].chain),
                                               .token = TOKEN + (uint64_t)i };
    start_all(w);
    expect_of(NULL);
}

void world_stop(struct world *w)
{
    expect_of("AG-17");
    for (int i = 0; i < w->n; i++)
        chain_shutdown(w->worker[i].chain);
    expect_of("AG-18");
    for (int i = 0; i < w->n; i++) {
        struct side *k = &w->worker[i];
        for (size_t m = 0; m < k->n_got; m++)
            k->got[m]->release(k->got[m]);
        free(k->got);
        free(k->from);
        chain_close(k->chain);
        pthread_mutex_destroy(&k->lock);
    }
    expect_of(NULL);
    loop_close(loop);
}

void world_open(struct world *w, const char *text, const char *path, int n, const char *mode)
{
    world_begin(text, path, mode);
    world_start(w, n);
}

void world_close(struct world *w)
{
    world_stop(w);
    world_end();
}

const char *world_plugin_path(void)
{
    size_t n;

    return plugin_path(chain_config_layers(stack, &n)->backend);
}

uint32_t world_mark(struct world *w)
{
    const bool proves = chain_innermost_flags(w->worker[0].chain) & TENREC_PLUGIN_PROVES;

    return proves && security->mode != SECURITY_NONE ? TENREC_MSG_PROVED : 0;
}

struct side *world_other(struct world *w)
{
    return &w->worker[w->n - 1];
}

struct tenrec_msg *side_got(struct side *k, size_t i, tenrec_peer *ret_from)
{
    struct tenrec_msg *msg = NULL;

    pthread_mutex_lock(&k->lock);
    if (i < k->n_got) {
        msg = k->got[i];
        if (ret_from)
            *ret_from = k->from[i];
    }
    pthread_mutex_unlock(&k->lock);
    return msg;
}

size_t side_count(struct side *k)
{
    size_t n;

    pthread_mutex_lock(&k->lock);
    n = k->n_got;
    pthread_mutex_unlock(&k->lock);
    return n;
}

/* --- sending ---------------------------------------------------------------- */

static void on_done(void *arg, const tenrec_error *err)
{
    struct tally *t = arg;

    if (err) {
        atomic_store(&t->last_error, err->code);
        atomic_store(&t->last_errno, err->os_errno);
    }
    atomic_fetch_add(err ? &t->failed : &t->ok, 1);
}

static void on_release(void *arg)
{
    atomic_fetch_add(&((struct tally *)arg)->released, 1);
}

struct tenrec_msg *make_request(int64_t id, const void *payload, size_t len, uint32_t n_tensors,
                                struct tally *tally)
{
    struct tenrec_msg *msg = letter_new(len, n_tensors);

    expect_here(msg);
    msg->type = TENREC_MSG_CALL;
    msg->id = id;
    if (len)
        memcpy(msg->payload, payload, len);
    letter_on_release(msg, on_release, tally);
    return msg;
}

void send_msg(struct side *k, tenrec_peer to, struct tenrec_msg *msg, struct tally *tally)
{
    chain_send(k->chain, to, msg, (struct tenrec_done){ on_done, tally });
}

void send_ping(struct side *k, tenrec_peer to, int64_t id, struct tally *tally)
{
    send_msg(k, to, make_request(id, "ping", 4, 0, tally), tally);
}

int told(const struct tally *tally)
{
    return atomic_load(&tally->ok) + atomic_load(&tally->failed);
}
