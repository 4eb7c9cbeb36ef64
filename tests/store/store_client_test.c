/* SPDX-License-Identifier: Apache-2.0 */
/* The TCP store's client with servers that start late or go away. */
#include "loopback.h"

#include "core/base/clock.h"
#include "group/store/store.h"

#include <stdatomic.h>
#include <time.h>

static tenrec_error err;

static uint16_t free_port(void)
{
    uint16_t port;

    close(listen_here(&port));
    return port;
}

TEST(client_names_address_and_reason_when_the_server_is_missing)
{
    struct tenrec_store *s = NULL;
    uint16_t port = free_port();
    char place[32];

    assert_int_equal(tenrec_store_open(url_of(port), 50, &s, &err), TENREC_ECONNECT);
    snprintf(place, sizeof place, "127.0.0.1:%u", port);
    assert_text_has(err.text, place);
    assert_text_has(err.text, "refused");
    assert_null(s);
}

struct late {
    uint16_t port;
    struct tenrec_store_server *server;
    tenrec_error err;
};

static void *serve_late(void *arg)
{
    struct late *l = arg;

    while (tenrec_store_server_new("127.0.0.1", l->port, &l->server, NULL, &l->err) != TENREC_OK)
        poll(NULL, 0, 1);
    return NULL;
}

TEST(client_connects_when_server_starts_later)
{
    struct late late = { .port = free_port() };
    struct tenrec_store *s;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, serve_late, &late), 0);
    assert_status(tenrec_store_open(url_of(late.port), TEST_MS, &s, &err), &err);
    pthread_join(thread, NULL);
    tenrec_store_close(s);
    tenrec_store_server_drop(late.server);
}

TEST(client_refuses_a_malformed_url)
{
    static const char *const bad[][2] = {
        { "http//x:1", "tcp://host:port" },
        { "HTTP://me:pw@x:1", "\"HTTP://me:***@x:1\" is no store" },
        { "HTTP://me:p w',\"@x:1", "\"HTTP://me:***@x:1\" is no store" },
        { "redis:me:pw@x", "\"redis:***@x\" is no store" },
        { "redis:/me:pw@x", "\"redis:***@x\" is no store" },
        { "", "tcp://host:port" },
        { "tcp://", "host:port" },
        { "tcp://localhost", "host:port" },
        { "tcp://:5", "host:port" },
        { "tcp://h:0", "1..65535" },
        { "tcp://h:65536", "1..65535" },
        { "tcp://h:5x", "1..65535" },
        { "tcp://h:-5", "1..65535" },
        { "tcp://::1:5", "[address]:port" },
        { "tcp://[::1:5", "host:port" },
        { "file://", "path" },
        { "memory://", "name" },
    };
    struct tenrec_store *s = NULL;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(tenrec_store_open(bad[i][0], 1000, &s, &err), TENREC_EINVAL);
        assert_text_has(err.text, bad[i][1]);
        assert_null(s);
    }
    assert_int_equal(tenrec_store_open("http://x:1", 1000, &s, &err), TENREC_EPLUGIN);
    assert_text_has(err.text, "store 'http': no plugin 'http'");
}

/* The hint to write drawer:// would send a password in plain text. */
TEST(client_refuses_a_scheme_that_asks_for_tls)
{
    struct tenrec_store *s = NULL;

    assert_int_equal(tenrec_store_open("drawers://me:pw@x", 1000, &s, &err), TENREC_EUNSUPPORTED);
    assert_text_has(err.text, "drawers:// asks for TLS, which the plugin 'drawer' does not speak");
    assert_null(strstr(err.text, "did you mean"));
}

TEST(client_names_a_host_that_is_unknown)
{
    struct tenrec_store *s = NULL;
    tenrec_status st = tenrec_store_open("tcp://no-such-host.invalid:5", 200, &s, &err);

    assert_true(st == TENREC_ECONNECT || st == TENREC_ETIMEDOUT);
    assert_text_has(err.text, "no-such-host.invalid");
}

struct waiter {
    struct tenrec_store *s;
    pthread_t thread;
    tenrec_status st;
    tenrec_error err;
};

static void *wait_for_nothing(void *arg)
{
    struct waiter *w = arg;
    const char *key = "never";

    w->st = tenrec_store_wait(w->s, &key, 1, TEST_MS, &w->err);
    return NULL;
}

/* Long before its deadline. */
TEST(client_wait_ends_when_server_goes_away)
{
    struct tenrec_store_server *server;
    struct waiter w = { 0 };
    struct tenrec_store *s;
    uint64_t start_ns;
    uint16_t port;

    assert_status(tenrec_store_server_new("127.0.0.1", 0, &server, &port, &err), &err);
    assert_status(tenrec_store_open(url_of(port), TEST_MS, &s, &err), &err);
    w.s = s;
    start_ns = clock_now_ns();
    assert_int_equal(pthread_create(&w.thread, NULL, wait_for_nothing, &w), 0);
    /* Whether the wait has begun or not: it must end. */
    tenrec_store_server_drop(server);
    pthread_join(w.thread, NULL);
    assert_int_equal(w.st, TENREC_EPEER_LOST);
    assert_text_has(w.err.text, "127.0.0.1");
    assert_true(clock_now_ns() - start_ns < (uint64_t)TEST_MS * 1000000u);
    assert_int_equal(tenrec_store_set(s, "k", "", 0, TEST_MS, &err), TENREC_EPEER_LOST);
    assert_text_has(err.text, "tcp store 127.0.0.1");
    tenrec_store_close(s);
}

struct cut {
    struct tenrec_store *s;
    atomic_bool done;
    tenrec_status st;
};

static void *wait_until_cut(void *arg)
{
    struct cut *c = arg;

    c->st = tenrec_store_wait(c->s, (const char *[]){ "never" }, 1, TENREC_TIMEOUT_NONE, NULL);
    atomic_store(&c->done, true);
    return NULL;
}

/* The server lives, and the key never comes. */
TEST(client_wait_ends_when_cut_by_another_thread)
{
    struct tenrec_store_server *server;
    struct cut c = { .st = TENREC_OK };
    pthread_t thread;
    uint16_t port;

    assert_status(tenrec_store_server_new("127.0.0.1", 0, &server, &port, &err), &err);
    assert_status(tenrec_store_open(url_of(port), TEST_MS, &c.s, &err), &err);
    assert_int_equal(pthread_create(&thread, NULL, wait_until_cut, &c), 0);
    assert_becomes((store_cut(c.s), atomic_load(&c.done)));
    pthread_join(thread, NULL);
    assert_int_equal(c.st, TENREC_EPEER_LOST);
    assert_status(tenrec_store_set(c.s, "k", "v", 1, TEST_MS, &err), &err);
    tenrec_store_close(c.s);
    tenrec_store_server_drop(server);
}

/* Without its connection it needs another, which the server does not accept any more. */
TEST(client_that_rests_closes_its_connections)
{
    struct tenrec_store_server *server;
    struct tenrec_store *s;
    uint16_t port;

    assert_status(tenrec_store_server_new("127.0.0.1", 0, &server, &port, &err), &err);
    assert_status(tenrec_store_open(url_of(port), TEST_MS, &s, &err), &err);
    store_rest(s);
    assert_status(tenrec_store_set(s, "k", "v", 1, TEST_MS, &err), &err);
    store_server_stop_listening(server);
    assert_status(tenrec_store_set(s, "k", "w", 1, TEST_MS, &err), &err);
    store_rest(s);
    store_rest(s);
    assert_int_equal(tenrec_store_set(s, "k", "x", 1, TEST_MS, &err), TENREC_EPEER_LOST);
    tenrec_store_close(s);
    tenrec_store_server_drop(server);
}

TEST(client_works_again_when_server_came_back)
{
    struct tenrec_store_server *server;
    struct tenrec_store *s;
    uint16_t port;

    assert_status(tenrec_store_server_new("127.0.0.1", 0, &server, &port, &err), &err);
    assert_status(tenrec_store_open(url_of(port), TEST_MS, &s, &err), &err);
    assert_status(tenrec_store_set(s, "k", "", 0, TEST_MS, &err), &err);
    tenrec_store_server_drop(server);
    assert_status(tenrec_store_server_new("127.0.0.1", port, &server, NULL, &err), &err);
    assert_status(tenrec_store_set(s, "k", "", 0, TEST_MS, &err), &err);
    tenrec_store_close(s);
    tenrec_store_server_drop(server);
}

/* Sets the key that is waited for, over the connection of the wait. */
static tenrec_status set_it(void *arg, const bool *missing, tenrec_error *why)
{
    assert_true(missing[0]);
    return store_set(arg, "key", "", 0, clock_deadline_ms(10000), why);
}

/* A worker that serves its group's store takes no new connections once it leaves. */
TEST(client_keeps_its_connection_through_the_rounds_of_a_wait)
{
    struct tenrec_store_server *server;
    struct store_rounds rounds = { 1, 1, set_it, NULL };
    const char *key = "key";
    struct tenrec_store *s;
    bool missing = false;
    uint16_t port;

    assert_status(tenrec_store_server_new("127.0.0.1", 0, &server, &port, &err), &err);
    assert_status(tenrec_store_open(url_of(port), 10000, &s, &err), &err);
    store_server_stop_listening(server);
    rounds.arg = s;
    assert_status(
        store_get_rounds(s, &key, 1, clock_deadline_ms(10000), &rounds, NULL, &missing, &err),
        &err);
    tenrec_store_close(s);
    tenrec_store_server_drop(server);
}

#define N_THREADS 32
#define N_ROUNDS 20

struct worker {
    struct tenrec_store *s;
    int index;
    bool good;
};

/* Waits for its neighbour's key of the round before setting its own. */
static void *chain(void *arg)
{
    struct worker *w = arg;
    tenrec_error e;
    void *data;
    char key[32];

    w->good = true;
    for (int i = 0; i < N_ROUNDS && w->good; i++) {
        snprintf(key, sizeof key, "%d/%d", i, w->index);
        w->good = tenrec_store_set(w->s, key, key, strlen(key), TEST_MS, &e) == TENREC_OK;
        snprintf(key, sizeof key, "%d/%d", i, (w->index + 1) % N_THREADS);
        if (w->good && tenrec_store_get(w->s, key, TEST_MS, &data, NULL, &e) == TENREC_OK) {
            w->good = strcmp(data, key) == 0;
            free(data);
        } else {
            w->good = false;
        }
    }
    return NULL;
}

TEST(client_serves_many_threads_on_one_store)
{
    struct tenrec_store_server *server;
    struct worker w[N_THREADS];
    pthread_t thread[N_THREADS];
    struct tenrec_store *s;
    uint16_t port;

    assert_status(tenrec_store_server_new("127.0.0.1", 0, &server, &port, &err), &err);
    assert_status(tenrec_store_open(url_of(port), TEST_MS, &s, &err), &err);
    for (int i = 0; i < N_THREADS; i++) {
        w[i] = (struct worker){ .s = s, .index = i };
        assert_int_equal(pthread_create(&thread[i], NULL, chain, &w[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < N_THREADS; i++)
        assert_true(w[i].good);
    tenrec_store_close(s);
    tenrec_store_server_drop(server);
}

/* The client reads the value to say why the server closed the connection. */
TEST(client_escapes_a_value_that_is_no_number)
{
    static const char value[] = "\x1b]0;x\a\r\nERROR\xc3 all is lost and so on and on";
    struct tenrec_store_server *server;
    struct tenrec_store *s;
    int64_t sum;
    uint16_t port;

    assert_status(tenrec_store_server_new("127.0.0.1", 0, &server, &port, &err), &err);
    assert_status(tenrec_store_open(url_of(port), TEST_MS, &s, &err), &err);
    assert_status(tenrec_store_set(s, "count", value, sizeof value - 1, TEST_MS, &err), &err);
    assert_int_equal(tenrec_store_add(s, "count", 1, TEST_MS, &sum, &err), TENREC_EINVAL);
    assert_text_has(err.text, "\"\\x1b]0;x\\x07\\r\\nERROR\\xc3 all is lost");
    assert_text_has(err.text, "\" is no number");
    tenrec_store_close(s);
    tenrec_store_server_drop(server);
}
