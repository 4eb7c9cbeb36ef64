/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of a store end at their limit, whatever its server does: with a clock that
 * goes on only while the client sleeps or polls, and a server that answers what a case
 * lists and is silent from then on. */
#include "../support/secured.h"
#include "../support/test_store.h"

#include "core/base/clock.h"
#include "group/store/store.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <time.h>

#define LIMIT_MS 1000
#define ROUNDED_MS 1 /* poll has whole milliseconds */

static uint64_t fake_ns;

/* ---- the clock ---------------------------------------------------------------------- */

int __wrap_clock_gettime(clockid_t id, struct timespec *ret);
int __wrap_nanosleep(const struct timespec *t, struct timespec *left);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms);
int __real_poll(struct pollfd *fds, nfds_t n, int ms);

int __wrap_clock_gettime(clockid_t id, struct timespec *ret)
{
    (void)id;
    *ret = (struct timespec){ .tv_sec = (time_t)(fake_ns / 1000000000u),
                              .tv_nsec = (long)(fake_ns % 1000000000u) };
    return 0;
}

int __wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
    (void)left;
    fake_ns += (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
    return 0;
}

/* ---- the server --------------------------------------------------------------------- */

/* It takes so many bytes on a connection, a new one or the last, and answers. */
struct turn {
    bool dials;
    size_t takes;
    const char *answer;
    size_t len;
};

static struct {
    int listener, conn;
    uint16_t port;
    const struct turn *turn;
    size_t n;
} server;

static const struct turn greeting = { true, 10, "\xff\xff\xff\xff", 4 };

static void server_acts(void)
{
    const struct turn *t = server.turn++;
    char sink[256];

    server.n--;
    if (t->dials) {
        if (server.conn >= 0)
            close(server.conn);
        server.conn = accept(server.listener, NULL, NULL);
        assert_true(server.conn >= 0);
    }
    assert_int_equal(recv(server.conn, sink, t->takes, MSG_WAITALL), t->takes);
    if (t->len > 0)
        assert_int_equal(send(server.conn, t->answer, t->len, MSG_NOSIGNAL), t->len);
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int ms)
{
    int r = __real_poll(fds, n, 0);

    if (r == 0 && server.n > 0) {
        const bool answers = server.turn->len > 0;

        server_acts();
        r = answers ? __real_poll(fds, n, TEST_MS) : 0;
    }
    if (r != 0)
        return r;
    if (ms < 0)
        fail_msg("the client waits for ever");
    fake_ns += (uint64_t)ms * 1000000u;
    return 0;
}

static void server_plays(const struct turn *turn, size_t n)
{
    server.turn = turn;
    server.n = n;
}

static void server_starts(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t len = sizeof at;

    fake_ns = 1000 * UINT64_C(1000000000);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server.conn = -1;
    server.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(server.listener, (struct sockaddr *)&at, sizeof at) != 0 ||
        listen(server.listener, 64) != 0 ||
        getsockname(server.listener, (struct sockaddr *)&at, &len) != 0)
        fail();
    server.port = ntohs(at.sin_port);
    server_plays(NULL, 0);
}

static void server_stops(void)
{
    close(server.listener);
    if (server.conn >= 0)
        close(server.conn);
}

static tenrec_status open_here(int64_t ms, struct tenrec_store **ret, tenrec_error *err)
{
    char url[64];

    snprintf(url, sizeof url, "tcp://127.0.0.1:%u", server.port);
    return tenrec_store_open(url, ms, ret, err);
}

static struct tenrec_store *opened(void)
{
    struct tenrec_store *s;
    tenrec_error err;

    server_plays(&greeting, 1);
    assert_status(open_here(LIMIT_MS, &s, &err), &err);
    return s;
}

/* ---- the operations ----------------------------------------------------------------- */

static tenrec_status do_set(struct tenrec_store *s, int64_t ms, tenrec_error *err)
{
    return tenrec_store_set(s, "k", "v", 1, ms, err);
}

static tenrec_status do_add(struct tenrec_store *s, int64_t ms, tenrec_error *err)
{
    int64_t n;

    return tenrec_store_add(s, "k", 1, ms, &n, err);
}

static tenrec_status do_swap(struct tenrec_store *s, int64_t ms, tenrec_error *err)
{
    return tenrec_store_compare_set(s, "k", "", 0, "v", 1, ms, NULL, NULL, err);
}

static tenrec_status do_get(struct tenrec_store *s, int64_t ms, tenrec_error *err)
{
    void *data;

    return tenrec_store_get(s, "k", ms, &data, NULL, err);
}

static tenrec_status do_wait(struct tenrec_store *s, int64_t ms, tenrec_error *err)
{
    const char *keys[] = { "k", "l" };

    return tenrec_store_wait(s, keys, 2, ms, err);
}

static tenrec_status do_check(struct tenrec_store *s, int64_t ms, tenrec_error *err)
{
    const char *keys[] = { "k", "l" };
    bool there;

    return tenrec_store_check(s, keys, 2, ms, &there, err);
}

static tenrec_status do_delete(struct tenrec_store *s, int64_t ms, tenrec_error *err)
{
    return tenrec_store_delete(s, "k", ms, NULL, err);
}

static tenrec_status do_count(struct tenrec_store *s, int64_t ms, tenrec_error *err)
{
    int64_t n;

    return tenrec_store_num_keys(s, ms, &n, err);
}

static const struct {
    tenrec_status (*run)(struct tenrec_store *s, int64_t ms, tenrec_error *err);
    tenrec_status silent; /* its status when the server does not answer */
} ops[] = {
    { do_set, TENREC_ETIMEDOUT },    { do_add, TENREC_ETIMEDOUT },   { do_swap, TENREC_ETIMEDOUT },
    { do_get, TENREC_EPEER_LOST },   { do_wait, TENREC_EPEER_LOST }, { do_check, TENREC_ETIMEDOUT },
    { do_delete, TENREC_ETIMEDOUT }, { do_count, TENREC_ETIMEDOUT },
};

#define N_OPS (sizeof ops / sizeof ops[0])

static void took(uint64_t since_ns, uint64_t least_ms, uint64_t most_ms)
{
    const uint64_t ns = fake_ns - since_ns;

    assert_in_range(ns / 1000000u, least_ms, most_ms + ROUNDED_MS);
}

TEST_WITH(operations_end_at_their_limit_when_the_server_hangs, server_starts, server_stops)
{
    struct tenrec_store *s = opened();
    tenrec_error err;

    for (size_t i = 0; i < N_OPS; i++) {
        uint64_t since_ns = fake_ns;
        assert_int_equal(ops[i].run(s, LIMIT_MS, &err), ops[i].silent);
        assert_text_has(err.text, "no answer");
        took(since_ns, LIMIT_MS, LIMIT_MS + STORE_ANSWER_MS);
    }
    tenrec_store_close(s);
}

TEST_WITH(operations_without_a_limit_to_wait_give_the_store_a_moment, server_starts, server_stops)
{
    struct tenrec_store *s = opened();
    tenrec_error err;

    for (size_t i = 0; i < N_OPS; i++) {
        uint64_t since_ns = fake_ns;
        assert_int_not_equal(ops[i].run(s, 0, &err), TENREC_OK);
        took(since_ns, 0, STORE_ANSWER_MS);
    }
    tenrec_store_close(s);
}

/* A long operation gives each of its parts the same deadline. */
TEST_WITH(operations_wait_for_nothing_when_their_deadline_is_long_over, server_starts, server_stops)
{
    struct tenrec_store *s = opened();
    const uint64_t since_ns = fake_ns, over_ns = fake_ns - 200 * UINT64_C(1000000);
    const char *keys[] = { "k" };
    bool missing;
    tenrec_error err;
    int64_t n;

    assert_int_equal(store_set(s, "k", "v", 1, over_ns, &err), TENREC_ETIMEDOUT);
    assert_int_equal(store_add(s, "k", 1, over_ns, &n, &err), TENREC_ETIMEDOUT);
    assert_int_equal(store_check_all(s, keys, 1, over_ns, &missing, &err), TENREC_ETIMEDOUT);
    assert_int_equal(store_get_all(s, keys, 1, over_ns, NULL, &missing, &err), TENREC_EPEER_LOST);
    assert_int_equal(store_remove_all(s, keys, 1, over_ns, NULL, &err), TENREC_ETIMEDOUT);
    took(since_ns, 0, 0);
    tenrec_store_close(s);
}

/* The answers to what is asked after a moment show that the server lives. */
TEST_WITH(wait_names_its_key_when_the_server_hangs_in_the_wait, server_starts, server_stops)
{
    static const struct turn turns[] = {
        { .takes = 19 },                           /* WAIT */
        { .takes = 1, .answer = "\1", .len = 1 },  /* CANCEL_WAIT */
        { .takes = 19, .answer = "\1", .len = 1 }, /* CHECK */
    };
    struct tenrec_store *s = opened();
    const char *key = "k";
    const uint64_t since_ns = fake_ns;
    tenrec_error err;

    server_plays(turns, 3);
    assert_int_equal(tenrec_store_wait(s, &key, 1, LIMIT_MS, &err), TENREC_ETIMEDOUT);
    assert_text_has(err.text, "no key \"k\"");
    assert_text_has(err.text, "did not answer whether");
    took(since_ns, LIMIT_MS, LIMIT_MS + STORE_ANSWER_MS);
    tenrec_store_close(s);
}

/* The key was there when the server said so, and hangs before it gives the value. */
TEST_WITH(read_ends_at_its_deadline_when_the_server_hangs_in_the_middle, server_starts,
          server_stops)
{
    static const struct turn check = { false, 19, "\0", 1 };
    struct tenrec_store *s = opened();
    const uint64_t since_ns = fake_ns;
    struct store_value value;
    tenrec_error err;

    server_plays(&check, 1);
    assert_int_not_equal(store_read(s, "k", clock_deadline_ms(LIMIT_MS), &value, &err), TENREC_OK);
    took(since_ns, LIMIT_MS, LIMIT_MS + STORE_ANSWER_MS);
    tenrec_store_close(s);
}

/* The server of many readers gives the value late: were each attempt as short as the first, all of
 * its answers would come too late. */
TEST_WITH(read_gives_a_slow_server_more_time_with_each_attempt, server_starts, server_stops)
{
    static const struct turn turns[] = {
        { .takes = 19, .answer = "\0", .len = 1 }, /* CHECK */
        { .takes = 10 },                           /* GET, in vain */
        { true, 24, "\0", 1 },                     /* on a new connection, again */
        { .takes = 10 },
        { true, 24, "\0", 1 },
        { .takes = 10 },
        { true, 24, "\0", 1 },
        { .takes = 10, .answer = "\1\0\0\0\0\0\0\0v", .len = 9 },
    };
    struct tenrec_store *s = opened();
    const uint64_t since_ns = fake_ns;
    struct store_value value;
    tenrec_error err;

    server_plays(turns, sizeof turns / sizeof turns[0]);
    assert_status(store_read(s, "k", clock_deadline_ms(60 * LIMIT_MS), &value, &err), &err);
    assert_memory_equal(value.data, "v", 1);
    took(since_ns, 7 * LIMIT_MS, 8 * LIMIT_MS);
    free(value.data);
    tenrec_store_close(s);
}

/* A server of many workers drops requests to connect while its queue is full. */
TEST_WITH(operation_connects_until_its_limit_when_the_server_accepts_late, server_starts,
          server_stops)
{
    struct tenrec_store *s = opened();
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    uint64_t since_ns;
    int other[2];
    tenrec_error err;

    shutdown(server.conn, SHUT_RDWR);
    if (listen(server.listener, 0) != 0 ||
        getsockname(server.listener, (struct sockaddr *)&at, &len) != 0)
        fail();
    for (int i = 0; i < 2; i++) {
        other[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        connect(other[i], (struct sockaddr *)&at, len);
    }
    since_ns = fake_ns;
    assert_int_equal(do_count(s, 20 * LIMIT_MS, &err), TENREC_ETIMEDOUT);
    took(since_ns, 20 * LIMIT_MS, 20 * LIMIT_MS + STORE_ANSWER_MS);
    for (int i = 0; i < 2; i++)
        close(other[i]);
    tenrec_store_close(s);
}

TEST_WITH(open_ends_at_its_limit_when_the_server_hangs, server_starts, server_stops)
{
    const uint64_t since_ns = fake_ns;
    struct tenrec_store *s;
    tenrec_error err;

    assert_int_equal(open_here(LIMIT_MS, &s, &err), TENREC_EPROTOCOL);
    took(since_ns, LIMIT_MS, LIMIT_MS + STORE_ANSWER_MS);
}

TEST_WITH(open_ends_at_its_limit_when_no_server_listens, server_starts, server_stops)
{
    const uint64_t since_ns = fake_ns;
    struct tenrec_store *s;
    tenrec_error err;

    close(server.listener);
    assert_int_equal(open_here(LIMIT_MS, &s, &err), TENREC_ECONNECT);
    took(since_ns, LIMIT_MS, LIMIT_MS + STORE_ANSWER_MS);
}

TEST_WITH(operations_end_at_their_limit_when_a_file_stays_locked, server_starts, server_stops)
{
    char path[] = "/tmp/tenrec-store-XXXXXX", url[64];
    int fd = mkstemp(path);
    struct tenrec_store *s;
    tenrec_error err;

    snprintf(url, sizeof url, "file://%s", path);
    assert_status(tenrec_store_open(url, LIMIT_MS, &s, &err), &err);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    for (size_t i = 0; i < N_OPS; i++) {
        uint64_t since_ns = fake_ns;
        assert_int_equal(ops[i].run(s, LIMIT_MS, &err), TENREC_EPEER_LOST);
        assert_text_has(err.text, "stays locked");
        took(since_ns, LIMIT_MS, LIMIT_MS + STORE_ANSWER_MS);
        since_ns = fake_ns;
        assert_int_equal(ops[i].run(s, 0, &err), TENREC_EPEER_LOST);
        took(since_ns, 0, STORE_ANSWER_MS);
    }
    close(fd);
    tenrec_store_close(s);
    unlink(path);
}

/* ---- with a secret ---------------------------------------------------------------- */

static tenrec_status open_secured(tenrec_error *err)
{
    struct security *security = secured("the secret of this group", PLAIN_NONE);
    struct tenrec_store *s = NULL;
    tenrec_status st =
        store_tcp_open("127.0.0.1", server.port, security, clock_deadline_ms(LIMIT_MS), &s, err);

    assert_null(s);
    security_drop(security);
    return st;
}

TEST_WITH(open_with_a_secret_ends_at_its_limit_when_no_proof_is_answered, server_starts,
          server_stops)
{
    const uint64_t since_ns = fake_ns;
    tenrec_error err;

    assert_int_equal(open_secured(&err), TENREC_ETIMEDOUT);
    assert_text_has(err.text, "does not answer the proof");
    took(since_ns, LIMIT_MS, LIMIT_MS + 100);
}

/* One byte of a proof, again and again. */
TEST_WITH(open_with_a_secret_ends_at_its_limit_when_the_proof_is_slow, server_starts, server_stops)
{
    static const struct turn slow[] = {
        { true, 4, "T", 1 }, { false, 4, "N", 1 }, { false, 4, "R", 1 }, { false, 4, "P", 1 }
    };
    const uint64_t since_ns = fake_ns;
    tenrec_error err;

    server_plays(slow, 4);
    assert_int_equal(open_secured(&err), TENREC_ETIMEDOUT);
    took(since_ns, LIMIT_MS, LIMIT_MS + 100);
}
