/* SPDX-License-Identifier: Apache-2.0 */
/* The TCP store's server, byte by byte, in the numbers of torch 1.13 and of 2.2
 * and later; and what it does with nonsense. */
#include "test_store.h"

#include "group/store_session.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <tenrec/log.h>
#include <time.h>

static struct tenrec_store_server *server;
static uint16_t port;

static int start_server(void **state)
{
    tenrec_error err;

    (void)state;
    assert_status(tenrec_store_serve("127.0.0.1", 0, &server, &port, &err), &err);
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    tenrec_store_server_drop(server);
    return 0;
}

static int dial(void)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
    struct timeval limit = { .tv_sec = 20 };
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static size_t unhex(const char *hex, unsigned char *ret)
{
    size_t n = 0;
    unsigned byte;

    for (; *hex; hex++) {
        if (*hex == ' ')
            continue;
        assert_int_equal(sscanf(hex++, "%2x", &byte), 1);
        ret[n++] = (unsigned char)byte;
    }
    return n;
}

static void say(int fd, const char *hex)
{
    unsigned char raw[4096];
    size_t n = unhex(hex, raw);

    assert_int_equal(send(fd, raw, n, MSG_NOSIGNAL), n);
}

static void hear(int fd, const char *hex)
{
    unsigned char raw[4096], got[4096];
    size_t n = unhex(hex, raw);

    assert_int_equal(recv(fd, got, n, MSG_WAITALL), n);
    assert_memory_equal(got, raw, n);
}

static void hears_nothing(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    assert_int_equal(poll(&p, 1, 0), 0);
}

static void is_closed(int fd)
{
    char byte;
    ssize_t r = recv(fd, &byte, 1, 0);

    assert_true(r == 0 || (r < 0 && errno == ECONNRESET));
    close(fd);
}

#define K(c) "0200000000000000 2f" c /* the key "/c" as a blob */
#define ONE "0100000000000000"
#define TWO "0200000000000000"
#define NONE "0000000000000000"
#define HELLO "00 cef7853c 0d 78563412"

static int dial_2_2(void)
{
    int fd = dial();

    say(fd, HELLO);
    hear(fd, "78563412");
    return fd;
}

/* Sends a request that has to wait, and returns when the server has it. */
static void waits(int fd, const char *hex)
{
    char whole[256];

    snprintf(whole, sizeof whole, "0d 0a0b0c0d %s", hex);
    say(fd, whole); /* one piece: what answers the ping has seen the rest */
    hear(fd, "0a0b0c0d");
}

/* The example of the wire document. */
static void server_speaks_1_13(void **state)
{
    int fd = dial();

    (void)state;
    say(fd, "00" K("61") "0500000000000000 68656c6c6f"); /* SET /a hello */
    say(fd, "05" ONE K("61"));                           /* WAIT */
    hear(fd, "00");
    say(fd, "02" K("61")); /* GET */
    hear(fd, "0500000000000000 68656c6c6f");
    say(fd, "03" K("62") "0500000000000000"); /* ADD /b 5 */
    hear(fd, "0500000000000000");
    say(fd, "03" K("62") "f9ffffffffffffff"); /* ADD /b -7 */
    hear(fd, "feffffffffffffff");
    say(fd, "02" K("62"));
    hear(fd, TWO "2d32");              /* "-2" in decimal text */
    say(fd, "04" TWO K("61") K("63")); /* CHECK */
    hear(fd, "01");
    say(fd, "04" TWO K("61") K("62"));
    hear(fd, "00");
    say(fd, "06"); /* GETNUMKEYS */
    hear(fd, TWO);
    say(fd, "01" K("63") ONE "78" ONE "79"); /* COMPARE_SET missing, expected x */
    hear(fd, ONE "78");
    say(fd, "01" K("63") NONE ONE "79"); /* missing, expected nothing */
    hear(fd, ONE "79");
    say(fd, "01" K("63") NONE ONE "7a"); /* present, not equal */
    hear(fd, ONE "79");
    say(fd, "08" K("63")); /* DELETE_KEY */
    hear(fd, ONE);
    say(fd, "08" K("63"));
    hear(fd, NONE);
    close(fd);
}

static void server_speaks_2_2(void **state)
{
    int fd = dial_2_2();

    (void)state;
    say(fd, "01" K("61") "0500000000000000 68656c6c6f"); /* SET */
    say(fd, "06" ONE K("61"));                           /* WAIT */
    hear(fd, "00");
    say(fd, "03" K("61")); /* GET */
    hear(fd, "0500000000000000 68656c6c6f");
    say(fd, "03" K("7a")); /* GET of what is not there */
    hear(fd, NONE);
    say(fd, "04" K("62") "0500000000000000"); /* ADD */
    hear(fd, "0500000000000000");
    say(fd, "05" TWO K("61") K("62")); /* CHECK */
    hear(fd, "00");
    say(fd, "07"); /* GETNUMKEYS */
    hear(fd, TWO);
    say(fd, "02" K("63") NONE ONE "79"); /* COMPARE_SET */
    hear(fd, ONE "79");
    say(fd, "08" K("63")); /* DELETE_KEY */
    hear(fd, ONE);
    say(fd, "09" K("61") ONE "21");    /* APPEND */
    say(fd, "0a" TWO K("61") K("62")); /* MULTI_GET */
    hear(fd, "0600000000000000 68656c6c6f21" ONE "35");
    say(fd, "0b" TWO K("64") ONE "31" K("65") ONE "32"); /* MULTI_SET */
    say(fd, "0a" TWO K("64") K("65"));
    hear(fd, ONE "31" ONE "32");
    say(fd, "0c"); /* CANCEL_WAIT with nothing to cancel */
    hear(fd, "01");
    say(fd, "0d 04030201"); /* PING */
    hear(fd, "04030201");
    say(fd, "08" K("61"));
    hear(fd, ONE);
    say(fd, "08" K("62"));
    hear(fd, ONE);
    say(fd, "08" K("64"));
    hear(fd, ONE);
    say(fd, "11"); /* LIST_KEYS */
    hear(fd, ONE K("65"));
    close(fd);
}

static void server_queues_in_order(void **state)
{
    int fd = dial_2_2();

    (void)state;
    say(fd, "10" K("71")); /* QUEUE_LEN */
    hear(fd, NONE);
    say(fd, "0f" K("71")); /* QUEUE_POP of an empty one: only the size */
    hear(fd, NONE);
    say(fd, "0e" K("71") ONE "31"
                             "0e" K("71") ONE "32"); /* QUEUE_PUSH twice */
    say(fd, "10" K("71"));
    hear(fd, TWO);
    say(fd, "05" ONE K("71")); /* CHECK: a queue counts as there */
    hear(fd, "00");
    say(fd, "0f" K("71"));
    hear(fd, TWO ONE "31");
    say(fd, "0f" K("71"));
    hear(fd, ONE ONE "32");
    close(fd);
}

static void server_push_wakes_one_waiter(void **state)
{
    int a = dial_2_2(), b = dial_2_2(), c = dial_2_2();
    struct pollfd p[2] = { { .fd = a, .events = POLLIN }, { .fd = b, .events = POLLIN } };

    (void)state;
    waits(a, "06" ONE K("71"));
    waits(b, "06" ONE K("71"));
    say(c, "0e" K("71") ONE "31 0d 00000000");
    hear(c, "00000000");
    assert_int_equal(poll(p, 2, 20000), 1);
    say(c, "0e" K("71") ONE "31 0d 00000000");
    hear(c, "00000000");
    hear(a, "00");
    hear(b, "00");
    close(a);
    close(b);
    close(c);
}

/* As torch's server: the count is a number under the key, which stays. */
static void server_holds_barrier_until_all_came(void **state)
{
    int a = dial_2_2(), b = dial_2_2();

    (void)state;
    say(a, "12" K("72") TWO "0d 01000000");
    say(b, "0d 02000000");
    hear(b, "02000000");
    hears_nothing(a);
    say(b, "12" K("72") TWO);
    hear(a, "00 01000000"); /* what came behind the barrier waited */
    hear(b, "00");
    say(b, "03" K("72"));
    hear(b, ONE "32");
    say(a, "12" K("72") TWO); /* later: passes at once */
    hear(a, "00");
    say(b, "03" K("72") "07");
    hear(b, ONE "33" ONE);
    close(a);
    close(b);
}

static void server_cancels_a_barrier(void **state)
{
    int a = dial_2_2(), b = dial_2_2();

    (void)state;
    waits(a, "12" K("72") "0300000000000000");
    say(a, "0c");
    hear(a, "01");
    say(b, "12" K("72") TWO);
    hear(b, "00"); /* who gave up counts */
    say(a, "0d 05000000");
    hear(a, "05000000");
    close(a);
    close(b);
}

/* As torch 1.13's server does; 2.4's takes 8 MiB. */
static void server_takes_values_of_64_MiB(void **state)
{
    const size_t len = (size_t)64 << 20;
    char *big = calloc(1, len), *got = malloc(len);
    int fd = dial_2_2();

    (void)state;
    memset(big + len / 2, 'x', 1000);
    say(fd, "01" K("67") "0000000400000000");
    for (size_t at = 0; at < len;) {
        ssize_t r = send(fd, big + at, len - at, MSG_NOSIGNAL);
        assert_true(r > 0);
        at += (size_t)r;
    }
    say(fd, "03" K("67"));
    hear(fd, "0000000400000000");
    assert_int_equal(recv(fd, got, len, MSG_WAITALL), len);
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

static void server_says_why_it_closed_a_connection(void **state)
{
    struct timespec until;
    int fd = dial();

    (void)state;
    tenrec_set_log_level(TENREC_LOG_WARN);
    tenrec_set_log_callback(keep_log, NULL);
    say(fd, "02 0120000000000000");
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += TEST_MS / 1000;
    pthread_mutex_lock(&log_lock);
    while (!*logged && pthread_cond_timedwait(&log_came, &log_lock, &until) == 0)
        ;
    pthread_mutex_unlock(&log_lock);
    tenrec_set_log_callback(NULL, NULL);
    assert_text_has(logged, "closed a connection of 127.0.0.1: key is longer than 8 KiB");
    is_closed(fd);
}

/* A connection without a socket: counts the bytes of its answers. */
static void count_bytes(void *arg, const void *data, size_t len)
{
    (void)data;
    *(size_t *)arg += len;
}

static bool never_full(void *arg)
{
    (void)arg;
    return false;
}

static void not_closed(void *arg, const char *why)
{
    (void)arg;
    fail_msg("closed: %s", why);
}

static void server_wakes_nobody_who_left_a_barrier(void **state)
{
    static const struct store_session_ops ops = { count_bytes, never_full, not_closed };
    struct store_session *s[3];
    struct store_hub hub;
    size_t got[3] = { 0 };
    unsigned char raw[64];
    size_t n = unhex("00 cef7853c 12" K("73") "0300000000000000", raw);

    (void)state;
    assert_int_equal(store_hub_init(&hub, 0), TENREC_OK);
    for (size_t i = 0; i < 3; i++) {
        s[i] = store_session_new(&hub, &ops, &got[i]);
        store_session_feed(s[i], raw, n);
        if (i == 0)
            store_session_drop(s[0]);
        assert_int_equal(got[i], i == 2);
    }
    assert_int_equal(got[0], 0);
    assert_int_equal(got[1], 1);
    store_session_drop(s[1]);
    store_session_drop(s[2]);
    store_hub_finish(&hub);
}

static void server_cancels_a_wait(void **state)
{
    int a = dial_2_2(), b = dial_2_2();

    (void)state;
    waits(a, "06" TWO K("77") K("78"));
    say(a, "0c");
    hear(a, "01");
    say(b, "01" K("77") ONE "31 01" K("78") ONE "31 0d 00000000");
    hear(b, "00000000");
    say(a, "0d 05000000");
    hear(a, "05000000"); /* no answer to the wait in between */
    close(a);
    close(b);
}

static void server_wakes_waiters_by_any_way_to_set(void **state)
{
    static const char *const ways[] = {
        "01" K("77") ONE "31", "02" K("77") NONE ONE "31", "04" K("77") ONE,
        "09" K("77") ONE "31", "0b" ONE K("77") ONE "31",
    };
    int a = dial_2_2(), b = dial_2_2();

    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        waits(a, "06" TWO K("77") K("76"));
        say(b, ways[i]);
        say(b, "01" K("76") ONE "31");
        hear(a, "00");
        say(a, "08" K("77") "08" K("76"));
        hear(a, ONE ONE);
    }
    close(a);
    close(b);
}

static void server_tells_changes_of_a_watched_key_1_13(void **state)
{
    int a = dial(), b = dial();

    (void)state;
    say(a, "07" K("75")); /* WATCH_KEY */
    hear(a, "03");
    say(b, "00" K("75") ONE "31"); /* created */
    hear(a, "01" K("75") NONE ONE "31");
    say(b, "00" K("75") ONE "32"); /* updated */
    hear(a, "00" K("75") ONE "31" ONE "32");
    say(b, "08" K("75")); /* deleted */
    hear(a, "02" K("75") ONE "32" NONE);
    close(a);
    close(b);
}

/* A request cut at every place gets no answer before its last byte. */
static void server_waits_for_whole_requests(void **state)
{
    static const char request[] = "\x04\x02\0\0\0\0\0\0\0/h\x01\0\0\0\0\0\0\0";
    int fd = dial_2_2();

    (void)state;
    for (size_t i = 0; i + 1 < sizeof request; i++) {
        hears_nothing(fd);
        assert_int_equal(send(fd, request + i, 1, MSG_NOSIGNAL), 1);
    }
    hear(fd, ONE);
    close(fd);
}

static void server_closes_bad_connections_and_lives_on(void **state)
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
        "00 cef7853c 12" K("6e") NONE,        /* barrier of nobody */
        "00 cef7853c 12" K("6e") "ffffffffffffffff",
        "03" K("6f") "ffffffffffffff7f 03" K("6f") ONE "06", /* overflow */
    };
    int alive = dial_2_2();

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int fd = dial();
        char sink[64];
        say(fd, bad[i]);
        while (recv(fd, sink, sizeof sink, 0) > 0)
            ;
        is_closed(fd);
        say(alive, "0d 07000000");
        hear(alive, "07000000");
    }
    close(alive);
}

static void server_survives_64_MiB_of_garbage(void **state)
{
    static unsigned char noise[1 << 16];
    int alive = dial_2_2();
    size_t sent = 0;
    uint32_t x = 12345;

    (void)state;
    while (sent < (size_t)64 << 20) {
        int fd = dial();
        for (size_t i = 0; i < sizeof noise; i++) {
            x = x * 1664525u + 1013904223u;
            noise[i] = (unsigned char)(x >> 24);
        }
        noise[0] = (unsigned char)(x >> 28); /* a request that exists */
        for (int part = 0; part < 64; part++) {
            ssize_t r = send(fd, noise, sizeof noise, MSG_NOSIGNAL);
            sent += sizeof noise; /* what the server does not take counts too */
            if (r < 0)
                break;
        }
        close(fd);
    }
    say(alive, "0d 07000000");
    hear(alive, "07000000");
    close(alive);
}

/* Who asks and does not read is not read from either; others go on. */
static void server_bounds_answers_that_nobody_reads(void **state)
{
    size_t len = 1 << 20;
    char *big = calloc(1, len);
    int greedy = dial_2_2(), alive = dial_2_2();
    struct timeval limit = { .tv_usec = 200000 };
    size_t asked = 0;

    (void)state;
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

static void server_goes_on_when_clients_vanish_in_a_wait(void **state)
{
    int alive = dial_2_2();

    (void)state;
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
static void server_drops_the_oldest_silent_connection_for_a_new_one(void **state)
{
    enum { FEW = 128, SILENT = 60 };
    struct rlimit before, few;
    int fd[SILENT], honest;

    (void)state;
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
    fd[0] = dial_2_2(); /* somebody new is served */
    say(honest, "0d 07000000");
    hear(honest, "07000000");
    for (int i = 0; i < SILENT; i++)
        close(fd[i]);
    close(honest);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void serve_is_refused_when_port_is_taken(void **state)
{
    struct tenrec_store_server *second = NULL;
    tenrec_error err;

    (void)state;
    assert_int_equal(tenrec_store_serve("127.0.0.1", port, &second, NULL, &err), TENREC_EOS);
    assert_text_has(err.text, "127.0.0.1");
    assert_int_equal(err.os_errno, EADDRINUSE);
    assert_null(second);
}

static void serve_listens_on_all_addresses_when_host_is_empty(void **state)
{
    struct tenrec_store_server *all;
    struct tenrec_store *s;
    tenrec_error err;
    uint16_t all_port;
    char url[64];

    (void)state;
    assert_status(tenrec_store_serve(NULL, 0, &all, &all_port, &err), &err);
    snprintf(url, sizeof url, "tcp://localhost:%u", all_port);
    assert_status(tenrec_store_open(url, TEST_MS, &s, &err), &err);
    tenrec_store_drop(s);
    tenrec_store_server_drop(all);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, start_server, stop_server)
    const struct CMUnitTest tests[] = {
        CASE(server_speaks_1_13),
        CASE(server_speaks_2_2),
        CASE(server_queues_in_order),
        CASE(server_push_wakes_one_waiter),
        CASE(server_holds_barrier_until_all_came),
        CASE(server_cancels_a_barrier),
        CASE(server_wakes_nobody_who_left_a_barrier),
        CASE(server_takes_values_of_64_MiB),
        CASE(server_says_why_it_closed_a_connection),
        CASE(server_cancels_a_wait),
        CASE(server_wakes_waiters_by_any_way_to_set),
        CASE(server_tells_changes_of_a_watched_key_1_13),
        CASE(server_waits_for_whole_requests),
        CASE(server_closes_bad_connections_and_lives_on),
        CASE(server_survives_64_MiB_of_garbage),
        CASE(server_bounds_answers_that_nobody_reads),
        CASE(server_goes_on_when_clients_vanish_in_a_wait),
        CASE(server_drops_the_oldest_silent_connection_for_a_new_one),
        CASE(serve_is_refused_when_port_is_taken),
        CASE(serve_listens_on_all_addresses_when_host_is_empty),
    };

    return cmocka_run_group_tests_name("store_server", tests, NULL, NULL);
}
