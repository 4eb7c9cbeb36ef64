/* SPDX-License-Identifier: Apache-2.0 */
/* store_server_test.c - the limits of the TCP store's server, and connections that it closes. */
#include "served.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <tenrec/log.h>
#include <tenrec/store.h>
#include <time.h>

/* As torch 1.13's server does; 2.4's takes 8 MiB. */
TEST_WITH(server_takes_values_of_64_MiB, start_server, stop_server)
{
    const size_t len = (size_t)64 << 20;
    char *big = calloc(1, len), *got = malloc(len);
    int fd = dial_2_2();

    memset(big + len / 2, 'x', 1000);
    say(fd, "01" K("67") "0000000400000000");
    for (size_t at = 0; at < len;) {
        ssize_t r = send(fd, big + at, len - at, MSG_NOSIGNAL);
        assert_true(r > 0);
        at += (size_t)r;
    }
    say(fd, "03" K("67"));
    hear(fd, "0000000400000000");
    assert_int_equal(recv_again(fd, got, len, MSG_WAITALL), len);
    assert_memory_equal(got, big, len);
    close(fd);
    free(got);
    free(big);
}

static char logged[512];
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t log_came = PTHREAD_COND_INITIALIZER;

static void keep_log(void *arg, enum tenrec_log_level level, const char *part, const char *text)
{
    (void)arg, (void)level, (void)part;
    pthread_mutex_lock(&log_lock);
    snprintf(logged, sizeof logged, "%s", text);
    pthread_cond_broadcast(&log_came);
    pthread_mutex_unlock(&log_lock);
}

TEST_WITH(server_gives_the_reason_for_a_closed_connection, start_server, stop_server)
{
    struct timespec until;
    int fd = dial();

    tenrec_log_set_level(TENREC_LOG_WARN);
    tenrec_log_set_callback(keep_log, NULL);
    say(fd, "02 0120000000000000");
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += TEST_MS / 1000;
    pthread_mutex_lock(&log_lock);
    while (!*logged && pthread_cond_timedwait(&log_came, &log_lock, &until) == 0)
        ;
    pthread_mutex_unlock(&log_lock);
    tenrec_log_set_callback(NULL, NULL);
    assert_text_has(logged, "closed a connection of 127.0.0.1: key is longer than 8 KiB");
    is_closed(fd);
}

/* A request cut at every place gets no answer before its last byte. */
TEST_WITH(server_waits_for_whole_requests, start_server, stop_server)
{
    static const char request[] = "\x04\x02\0\0\0\0\0\0\0/h\x01\0\0\0\0\0\0\0";
    int fd = dial_2_2();

    for (size_t i = 0; i + 1 < sizeof request; i++) {
        hears_nothing(fd);
        assert_int_equal(send(fd, request + i, 1, MSG_NOSIGNAL), 1);
    }
    hear(fd, ONE);
    close(fd);
}

TEST_WITH(server_closes_bad_connections_and_lives_on, start_server, stop_server)
{
    static const char *const bad[] = {
        "ff",                                 /* no such request */
        "0f",                                 /* none of 1.13's */
        "00 cef7853c 00 00000000",            /* wrong magic later */
        "00 cef7853c 13",                     /* none of 2.2's */
        "00 ffffffffffffff7f",                /* absurd key */
        "02 0120000000000000",                /* key of 8193 bytes */
        "00" K("61") "0100000400000000",      /* value of 64 MiB and one */
        "05 0100020000000000",                /* list of 131073 keys */
        "05 ffffffffffffffff",                /* list without end */
        "00" K("6e") ONE "78 03" K("6e") ONE, /* ADD to no number */
        "00 cef7853c 12" K("6e") NONE,        /* barrier of none */
        "00 cef7853c 12" K("6e") "ffffffffffffffff",
        "03" K("6f") "ffffffffffffff7f 03" K("6f") ONE "06", /* overflow */
    };
    int alive = dial_2_2();

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int fd = dial();
        char sink[64];
        say(fd, bad[i]);
        while (recv_again(fd, sink, sizeof sink, 0) > 0)
            ;
        is_closed(fd);
        say(alive, "0d 07000000");
        hear(alive, "07000000");
    }
    close(alive);
}

TEST_WITH(server_survives_64_MiB_of_garbage, start_server, stop_server)
{
    static unsigned char noise[1 << 16];
    int alive = dial_2_2();
    size_t sent = 0;
    uint32_t x = 12345;

    while (sent < (size_t)64 << 20) {
        int fd = dial();
        for (size_t i = 0; i < sizeof noise; i++) {
            x = x * 1664525u + 1013904223u;
            noise[i] = (unsigned char)(x >> 24);
        }
        noise[0] = (unsigned char)(x >> 28); /* a request that exists */
        for (int part = 0; part < 64; part++) {
            ssize_t r = send(fd, noise, sizeof noise, MSG_NOSIGNAL);
            sent += sizeof noise; /* bytes that the server does not take count too */
            if (r < 0)
                break;
        }
        close(fd);
    }
    say(alive, "0d 07000000");
    hear(alive, "07000000");
    close(alive);
}

/* A client that asks and does not read is not read from either; others go on. */
TEST_WITH(server_bounds_unread_answers, start_server, stop_server)
{
    size_t len = 1 << 20;
    char *big = calloc(1, len);
    int greedy = dial_2_2(), alive = dial_2_2();
    struct timeval limit = { .tv_usec = 200000 };
    size_t asked = 0;

    say(greedy, "01" K("67") "0000100000000000");
    for (size_t at = 0; at < len;)
        at += (size_t)send(greedy, big + at, len - at, MSG_NOSIGNAL);
    setsockopt(greedy, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    /* 64 Ki requests would be answered by 64 GiB. */
    for (; asked < 65536; asked++)
        if (send(greedy, "\3\2\0\0\0\0\0\0\0/g", 11, MSG_NOSIGNAL) != 11)
            break;
    say(alive, "0d 07000000");
    hear(alive, "07000000");
    close(greedy);
    close(alive);
    free(big);
}

/* Far more than one turn has, in as few reads as possible; other clients are served meanwhile. */
TEST_WITH(server_answers_all_requests_of_a_client_that_sends_many_at_once, start_server,
          stop_server)
{
    enum { N = 40000 };
    int many = dial_2_2(), other = dial_2_2();
    unsigned char pings[N][5] = { { 0x0d, 7 } }, pongs[N][4];

    for (size_t i = 1; i < N; i++)
        memcpy(pings[i], pings[0], sizeof pings[i]);
    for (size_t at = 0; at < sizeof pings;) {
        ssize_t n = send(many, (unsigned char *)pings + at, sizeof pings - at, MSG_NOSIGNAL);
        assert_true(n > 0);
        at += (size_t)n;
    }
    say(other, "0d 08000000");
    hear(other, "08000000");
    assert_int_equal(recv_again(many, pongs, sizeof pongs, MSG_WAITALL), sizeof pongs);
    for (size_t i = 0; i < N; i++)
        assert_memory_equal(pongs[i], "\7\0\0\0", 4);
    close(many);
    close(other);
}

TEST_WITH(server_goes_on_when_clients_vanish_in_a_wait, start_server, stop_server)
{
    int alive = dial_2_2();

    for (int i = 0; i < 50; i++) {
        int fd = dial_2_2();
        say(fd, "06" TWO K("79") K("7a"));
        close(fd);
    }
    say(alive, "01" K("79") ONE "31 01" K("7a") ONE "31 0d 07000000");
    hear(alive, "07000000");
    close(alive);
}

/* Also a process with few descriptors, half of them for the clients' ends. */
TEST_WITH(server_drops_the_oldest_silent_connection_for_a_new_connection, start_server, stop_server)
{
    enum { FEW = 128, SILENT = 60 };
    struct rlimit before, few;
    int fd[SILENT], honest;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = FEW;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    honest = dial_2_2();
    for (int i = 0; i < SILENT; i++) {
        fd[i] = dial();
        say(honest, "0d 07000000");
        hear(honest, "07000000");
    }
    is_closed(fd[0]);
    fd[0] = dial_2_2(); /* a new client is served */
    say(honest, "0d 07000000");
    hear(honest, "07000000");
    for (int i = 0; i < SILENT; i++)
        close(fd[i]);
    close(honest);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_WITH(serve_is_refused_when_port_is_taken, start_server, stop_server)
{
    struct tenrec_store_server *second = NULL;
    tenrec_error err;

    assert_int_equal(tenrec_store_server_new("127.0.0.1", served_port, &second, NULL, &err),
                     TENREC_EOS);
    assert_text_has(err.text, "127.0.0.1");
    assert_int_equal(err.os_errno, EADDRINUSE);
    assert_null(second);
}

TEST_WITH(serve_listens_on_all_addresses_when_host_is_empty, start_server, stop_server)
{
    struct tenrec_store_server *all;
    struct tenrec_store *s;
    tenrec_error err;
    uint16_t all_port;
    char url[64];

    assert_status(tenrec_store_server_new(NULL, 0, &all, &all_port, &err), &err);
    snprintf(url, sizeof url, "tcp://127.0.0.1:%u", all_port);
    assert_status(tenrec_store_open(url, TEST_MS, &s, &err), &err);
    tenrec_store_close(s);
    tenrec_store_server_drop(all);
}
