/* SPDX-License-Identifier: Apache-2.0 */
/* The TCP store's client with servers whose answers are written here, byte by byte: among them
 * servers that are silent, or no stores. */
#include "loopback.h"

#include "core/base/clock.h"
#include "group/store/store.h"

static tenrec_error err;

TEST(client_gives_up_on_a_silent_listener)
{
    struct tenrec_store *s = NULL;
    uint16_t port;
    int fd = listen_here(&port);

    assert_int_equal(tenrec_store_open(url_of(port), 150, &s, &err), TENREC_EPROTOCOL);
    assert_text_has(err.text, "does not answer");
    close(fd);
}

struct talker {
    int fd;
    const char *says;
};

/* Greets each client, as a mail server does, and closes. */
static void *talk(void *arg)
{
    struct talker *t = arg;
    int c;

    while ((c = accept(t->fd, NULL, NULL)) >= 0) {
        (void)!send(c, t->says, strlen(t->says), MSG_NOSIGNAL);
        close(c);
    }
    return NULL;
}

TEST(client_refuses_a_server_of_something_else)
{
    struct talker t = { .says = "220 mail.example ESMTP" };
    struct tenrec_store *s = NULL;
    pthread_t thread;
    uint16_t port;

    t.fd = listen_here(&port);
    assert_int_equal(pthread_create(&thread, NULL, talk, &t), 0);
    assert_int_equal(tenrec_store_open(url_of(port), TEST_MS, &s, &err), TENREC_EPROTOCOL);
    shutdown(t.fd, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(t.fd);
}

struct script {
    int fd;
    pthread_t thread;
};

/* Opens a store whose server is the function `answers`. */
static struct tenrec_store *script_begin(struct script *t, void *(*answers)(void *))
{
    struct tenrec_store *s;
    uint16_t port;

    t->fd = listen_here(&port);
    assert_int_equal(pthread_create(&t->thread, NULL, answers, t), 0);
    assert_status(tenrec_store_open(url_of(port), TEST_MS, &s, &err), &err);
    return s;
}

static void script_end(struct script *t, struct tenrec_store *s)
{
    pthread_join(t->thread, NULL);
    close(t->fd);
    tenrec_store_close(s);
}

/* A server in the middle that takes requests and loses all answers. */
static void *swallow(void *arg)
{
    struct script *t = arg;
    char sink[256];
    int c = accept(t->fd, NULL, NULL);

    (void)!recv(c, sink, 10, MSG_WAITALL);
    (void)!send(c, "\xff\xff\xff\xff", 4, MSG_NOSIGNAL); /* the ping is answered */
    while (recv(c, sink, sizeof sink, 0) > 0)
        ;
    close(c);
    return NULL;
}

TEST(client_reports_a_store_that_went_silent)
{
    struct script t;
    struct tenrec_store *s;
    void *data = NULL;

    s = script_begin(&t, swallow);
    assert_int_equal(tenrec_store_get(s, "k", 20, &data, NULL, &err), TENREC_EPEER_LOST);
    assert_text_has(err.text, "\"/k\"");
    assert_text_has(err.text, "no answer");
    script_end(&t, s);
}

/* Answers the ping as above, and the next request by a value of 64 MiB and a byte. */
static void *boast(void *arg)
{
    struct script *t = arg;
    char sink[256];
    int c = accept(t->fd, NULL, NULL);

    (void)!recv(c, sink, 10, MSG_WAITALL);
    (void)!send(c, "\xff\xff\xff\xff", 4, MSG_NOSIGNAL);
    (void)!recv(c, sink, 1, MSG_WAITALL);
    (void)!send(c, "\1\0\0\4\0\0\0\0", 8, MSG_NOSIGNAL);
    while (recv(c, sink, sizeof sink, 0) > 0)
        ;
    close(c);
    return NULL;
}

static void answer(int c, size_t request, const char *with, size_t len)
{
    char sink[64];

    assert_true(request <= sizeof sink);
    (void)!recv(c, sink, request, MSG_WAITALL);
    (void)!send(c, with, len, MSG_NOSIGNAL);
}

/* Bytes of requests about the key "/k", and of lists of two such keys. */
enum { PING = 10, CHECK = 19, GET = 11, BOTH = 29 };

/* The key exists, is absent when it is read, and returns. */
static void *remove_it(void *arg)
{
    struct script *t = arg;
    int c = accept(t->fd, NULL, NULL);

    answer(c, PING, "\xff\xff\xff\xff", 4);
    answer(c, CHECK, "\0", 1);
    answer(c, GET, "\0\0\0\0\0\0\0\0", 8);
    answer(c, CHECK, "\1", 1);
    answer(c, CHECK, "\0", 1);
    answer(c, GET, "\1\0\0\0\0\0\0\0v", 9);
    close(c);
    return NULL;
}

TEST(client_waits_again_for_a_key_that_is_removed_before_the_read)
{
    struct script t;
    struct tenrec_store *s;
    void *data = NULL;
    size_t len = 0;

    s = script_begin(&t, remove_it);
    assert_status(tenrec_store_get(s, "k", TEST_MS, &data, &len, &err), &err);
    assert_int_equal(len, 1);
    assert_memory_equal(data, "v", 1);
    free(data);
    script_end(&t, s);
}

/* The key exists and is empty; whether it was removed meanwhile is not answered. */
static void *fall_silent(void *arg)
{
    struct script *t = arg;
    char sink[256];
    int c = accept(t->fd, NULL, NULL);

    answer(c, PING, "\xff\xff\xff\xff", 4);
    answer(c, CHECK, "\0", 1);
    answer(c, GET, "\0\0\0\0\0\0\0\0", 8);
    while (recv(c, sink, sizeof sink, 0) > 0)
        ;
    close(c);
    return NULL;
}

TEST(client_tells_silence_from_a_missing_key_when_a_value_is_empty)
{
    struct script t;
    struct tenrec_store *s;
    void *data = NULL;

    s = script_begin(&t, fall_silent);
    assert_int_equal(tenrec_store_get(s, "k", 500, &data, NULL, &err), TENREC_EPEER_LOST);
    assert_text_has(err.text, "no answer");
    assert_null(strstr(err.text, "no key"));
    script_end(&t, s);
}

/* Of two keys the first has an empty value, and the second is removed once it is read. */
static void *remove_the_other(void *arg)
{
    struct script *t = arg;
    int c = accept(t->fd, NULL, NULL);

    answer(c, PING, "\xff\xff\xff\xff", 4);
    answer(c, BOTH, "\0", 1);                                 /* WAIT */
    answer(c, BOTH, "\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0v", 17); /* MULTI_GET */
    answer(c, BOTH, "\1", 1);                                 /* CHECK: one is missing */
    answer(c, 2 * CHECK, "\0\1", 2);
    close(c);
    return NULL;
}

TEST(client_keeps_a_read_value_when_the_key_is_removed)
{
    const char *keys[] = { "a", "b" };
    struct store_value value[2] = { { 0 } };
    struct script t;
    struct tenrec_store *s;

    s = script_begin(&t, remove_the_other);
    assert_status(store_get_all(s, keys, 2, clock_deadline_ms(TEST_MS), value, NULL, &err), &err);
    assert_int_equal(value[0].len, 0);
    assert_int_equal(value[1].len, 1);
    assert_memory_equal(value[1].data, "v", 1);
    store_values_free(value, 2);
    script_end(&t, s);
}

/* As torch 1.13's server, which takes no wait back: it closes the connection of a request
 * that it does not know. */
static void *wait_without_end(void *arg)
{
    struct script *t = arg;
    char sink[32];
    int c = accept(t->fd, NULL, NULL);

    (void)!recv(c, sink, PING, MSG_WAITALL);
    close(c);
    c = accept(t->fd, NULL, NULL);
    answer(c, 1, "\0\0\0\0\0\0\0\0", 8); /* a count of keys */
    answer(c, CHECK, "\1", 1);
    (void)!recv(c, sink, CHECK, MSG_WAITALL); /* WAIT */
    (void)!recv(c, sink, 1, MSG_WAITALL);
    close(c);
    if ((c = accept(t->fd, NULL, NULL)) < 0)
        return NULL;
    for (int i = 0; i < 2; i++)
        answer(c, CHECK, "\1", 1);
    close(c);
    return NULL;
}

TEST(client_ends_a_round_when_the_server_takes_no_wait_back)
{
    const char *key = "k";
    struct script t;
    struct tenrec_store *s;
    bool missing = false;
    tenrec_status st;

    s = script_begin(&t, wait_without_end);
    st = store_wait_round(s, &key, 1, clock_deadline_ms(1), clock_deadline_ms(TEST_MS), &missing,
                          &err);
    shutdown(t.fd, SHUT_RDWR);
    script_end(&t, s);
    assert_int_equal(st, TENREC_ETIMEDOUT);
    assert_true(missing);
}

TEST(client_refuses_a_value_that_is_too_long)
{
    struct script t;
    struct tenrec_store *s;

    s = script_begin(&t, boast);
    assert_int_equal(tenrec_store_compare_set(s, "k", "", 0, "v", 1, TEST_MS, NULL, NULL, &err),
                     TENREC_EPROTOCOL);
    assert_text_has(err.text, "announced a value of 67108865 bytes");
    script_end(&t, s);
}
