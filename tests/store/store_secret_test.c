/* SPDX-License-Identifier: Apache-2.0 */
/* store_secret_test.c - a TCP store with a group secret: its members, and strangers. The
 * bytes of the latter reach no session. */
#include "../support/process_use.h"
#include "../support/secured.h"
#include "served.h"

#include "core/base/clock.h"
#include "group/store/store.h"
#include "group/store/store_session.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define OURS "the secret of this group"
#define OTHER "the secret of another group"
#define NOBODY 65534
#define PING "0d 07000000"
#define PONG "07000000"

/* ---- what reaches a session ----------------------------------------------------- */

static atomic_size_t fed, begun;

void __real_store_session_feed(struct store_session *s, const void *data, size_t len);
void __wrap_store_session_feed(struct store_session *s, const void *data, size_t len);
void __wrap_store_session_feed(struct store_session *s, const void *data, size_t len)
{
    atomic_fetch_add(&fed, len);
    __real_store_session_feed(s, data, len);
}

struct store_session *__real_store_session_new(struct store_hub *hub,
                                               const struct store_session_ops *ops, void *arg);
struct store_session *__wrap_store_session_new(struct store_hub *hub,
                                               const struct store_session_ops *ops, void *arg);
struct store_session *__wrap_store_session_new(struct store_hub *hub,
                                               const struct store_session_ops *ops, void *arg)
{
    atomic_fetch_add(&begun, 1);
    return __real_store_session_new(hub, ops, arg);
}

/* ---- a closed store, and its clients -------------------------------------------- */

static struct security *ours;

static void start_with(enum security_plain plain)
{
    ours = secured(OURS, plain);
    start_server_with(ours);
    atomic_store(&fed, 0);
}

static void start_closed(void)
{
    start_with(PLAIN_NONE);
}

static void stop(void)
{
    stop_server();
    security_drop(ours);
}

static tenrec_status open_with(struct security *security, uint64_t ms, struct tenrec_store **ret,
                               tenrec_error *err)
{
    return store_tcp_open("127.0.0.1", served_port, security, clock_deadline_ms(ms), ret, err);
}

static void answer_proof(int fd, struct proof *p, char *ret_sent, size_t *ret_len)
{
    char in[PROOF_RECORD_MAX];
    tenrec_error err;
    size_t len, used;
    const void *out = proof_output(p, &len);

    memcpy(ret_sent + *ret_len, out, len);
    *ret_len += len;
    assert_int_equal(send(fd, out, len, MSG_NOSIGNAL), len);
    if (!proof_is_complete(p)) {
        const ssize_t n = recv_again(fd, in, sizeof in, 0);
        assert_true(n > 0);
        assert_status(proof_take(p, in, (size_t)n, &used, &err), &err);
    }
}

/* Proves the secret by hand. Returns the number of the bytes sent, which are in `ret_sent`. */
static size_t prove(int fd, char ret_sent[2 * PROOF_RECORD_MAX])
{
    struct proof *p = secured_client(OURS, STORE_PURPOSE);
    size_t len = 0;

    while (!proof_is_complete(p))
        answer_proof(fd, p, ret_sent, &len);
    proof_close(p);
    return len;
}

/* A member's connection, to see that others do not disturb it. */
static int member(void)
{
    char sent[2 * PROOF_RECORD_MAX];
    int fd = dial();

    prove(fd, sent);
    say(fd, HELLO);
    hear(fd, "78563412");
    atomic_store(&fed, 0);
    return fd;
}

/* The bytes that the server sends until it closes do not matter. */
static void is_closed_at_last(int fd)
{
    char sink[2 * PROOF_RECORD_MAX];

    shutdown(fd, SHUT_WR);
    while (recv_again(fd, sink, sizeof sink, 0) > 0)
        ;
    is_closed(fd);
}

/* The server has acted on all that came before, and none of it reached a session. */
static void only_the_member_was_heard(int fd)
{
    assert_int_equal(atomic_load(&fed), 0);
    say(fd, PING);
    hear(fd, PONG);
    atomic_store(&fed, 0);
}

/* ---- members --------------------------------------------------------------------- */

static void *wait_for_key(void *arg)
{
    tenrec_error err;

    assert_status(tenrec_store_wait(arg, (const char *const[]){ "late" }, 1, TEST_MS, &err), &err);
    return NULL;
}

/* A wait keeps its connection busy: the other operations dial, and prove, again. */
TEST_WITH(members_use_a_closed_store_on_several_connections, start_closed, stop)
{
    struct tenrec_store *s;
    pthread_t thread;
    int64_t sum = 0;
    tenrec_error err;

    assert_status(open_with(ours, TEST_MS, &s, &err), &err);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_key, s), 0);
    for (int i = 0; i < 20; i++)
        assert_status(tenrec_store_add(s, "n", 1, TEST_MS, &sum, &err), &err);
    assert_int_equal(sum, 20);
    assert_status(tenrec_store_set(s, "late", "x", 1, TEST_MS, &err), &err);
    pthread_join(thread, NULL);
    tenrec_store_close(s);
}

static void start_same_user(void)
{
    start_with(PLAIN_SAME_USER);
}

TEST_WITH(plain_client_of_our_user_speaks_torchs_bytes, start_same_user, stop)
{
    int fd = dial_2_2(), older = dial();

    say(fd, "01" K("61") ONE "31"); /* SET */
    say(fd, PING);
    hear(fd, PONG);
    say(older, "06"); /* NUM_KEYS of 1.13, one byte */
    hear(older, ONE);
    close(fd);
    close(older);
}

/* Dials as another user, says hello and exits: 0 if the store answers, 1 if it closes. */
static int nobody_says_hello(void)
{
    char answer[4];
    int fd, status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
            _exit(2);
        fd = dial();
        say(fd, HELLO);
        _exit(recv_again(fd, answer, 4, MSG_WAITALL) == 4 &&
                      memcmp(answer, "\x78\x56\x34\x12", 4) == 0
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

TEST(plain_client_of_another_user_is_let_in_by_loopback_and_all_only)
{
    static const struct {
        enum security_plain plain;
        int status;
    } rows[] = {
        { PLAIN_NONE, 1 }, { PLAIN_SAME_USER, 1 }, { PLAIN_LOOPBACK, 0 }, { PLAIN_ALL, 0 }
    };

    if (geteuid() != 0)
        skip();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        start_with(rows[i].plain);
        assert_int_equal(nobody_says_hello(), rows[i].status);
        stop();
    }
}

/* ---- strangers -------------------------------------------------------------------- */

TEST_WITH(client_without_a_secret_learns_that_one_is_asked, start_closed, stop)
{
    struct tenrec_store *s = NULL;
    tenrec_error err;

    assert_int_equal(open_with(NULL, TEST_MS, &s, &err), TENREC_EPERM);
    assert_text_has(err.text, "the store asks for a group secret; none was given: --secret-file or "
                              "TENREC_SECRET_FILE");
    assert_null(s);
    assert_int_equal(atomic_load(&fed), 0);
}

TEST_WITH(client_with_another_secret_is_refused, start_closed, stop)
{
    struct security *other = secured(OTHER, PLAIN_NONE);
    struct tenrec_store *s = NULL;
    tenrec_error err;

    assert_int_equal(open_with(other, TEST_MS, &s, &err), TENREC_EPERM);
    assert_text_has(err.text, "another group secret");
    assert_null(s);
    assert_int_equal(atomic_load(&fed), 0);
    security_drop(other);
}

/* The store of torch closes at the first byte of a proof, as ours without a secret does. */
TEST_WITH(client_with_a_secret_falls_back_to_no_plain_store, start_server, stop_server)
{
    struct security *mine = secured(OURS, PLAIN_ALL);
    struct tenrec_store *s = NULL;
    tenrec_error err;

    assert_int_equal(open_with(mine, 200, &s, &err), TENREC_EPEER_LOST);
    assert_text_has(err.text, "speaks no proof of the group secret");
    assert_text_has(err.text, "torch's TCPStore, or a store without a secret");
    assert_null(s);
    security_drop(mine);
}

TEST_WITH(bytes_without_a_proof_reach_no_session, start_closed, stop)
{
    static const char *const bad[] = {
        HELLO,                                     /* torch 2.2 */
        "06",                                      /* torch 1.13 */
        "01" K("61") ONE "31",                     /* a SET */
        "ff",                                      /* no request */
        "544e",                                    /* the beginning of a proof */
        "544e5250",                                /* its magic */
        "544e5250 ffffffffffffffffffffffffffffff", /* and no more of it */
        "544e5258 00000000",                       /* almost */
        "485454502f312e310d0a0d0a",                /* another protocol */
        ("544e5250 00000000 " HELLO),              /* a request behind it */
    };
    int alive = member();

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int fd = dial();
        say(fd, bad[i]);
        is_closed_at_last(fd);
        only_the_member_was_heard(alive);
    }
    close(alive);
}

/* The whole of a client's bytes, cut at every place, and a request in the place of the rest. */
TEST_WITH(proof_that_ends_early_reaches_no_session, start_closed, stop)
{
    char sent[2 * PROOF_RECORD_MAX];
    int alive = member(), fd = dial();
    const size_t len = prove(fd, sent);

    close(fd);
    for (size_t cut = 0; cut <= len; cut++) { /* the whole is a replay */
        fd = dial();
        assert_int_equal(send(fd, sent, cut, MSG_NOSIGNAL), cut);
        if (cut % 2)
            say(fd, HELLO);
        is_closed_at_last(fd);
    }
    only_the_member_was_heard(alive);
    close(alive);
}

static atomic_bool over;

/* Returns NULL, or the store if an operation failed. */
static void *count_on(void *arg)
{
    int64_t sum, n = 0;
    tenrec_error err;

    for (; !atomic_load(&over); n++)
        if (tenrec_store_add(arg, "n", 1, TEST_MS, &sum, &err) != TENREC_OK)
            return arg;
    return n > 0 ? NULL : arg;
}

/* Opens `many` connections that say `len` bytes or less of a proof, `window` of them at a time.
 * Returns how many members came meanwhile. */
static size_t come_and_go(int *fd, int window, int many, const void *said, size_t len, int alive)
{
    size_t members = 0;

    memset(fd, -1, (size_t)window * sizeof *fd);
    for (int i = 0; i < many; i++) {
        int *at = &fd[i % window];
        const size_t cut = (size_t)i % (len + 1);

        if (*at >= 0)
            close(*at);
        *at = dial();
        assert_int_equal(send(*at, said, cut, MSG_NOSIGNAL), cut);
        if (i % 100 == 0) {
            say(alive, PING);
            hear(alive, PONG);
            close(member()); /* a new one gets in */
            members++;
        }
    }
    for (int i = 0; i < window; i++)
        close(fd[i]);
    return members;
}

/* More at once than the server keeps of them, if the limit of descriptors allows. They stop at each
 * byte of their HELLO in turn. */
TEST_WITH(half_handshakes_do_not_disturb_members, start_closed, stop)
{
    enum { MANY = 10000, WINDOW = 4500, LEFT_BYTES = 1 << 20 /* in the allocator's caches */ };
    static int fd[WINDOW];
    struct proof *p = secured_client(OURS, STORE_PURPOSE);
    const int window = process_may_open(2 * WINDOW + 200) ? WINDOW : 200;
    struct tenrec_store *s;
    pthread_t thread;
    void *failed;
    size_t len, memory, members;
    const void *hello = proof_output(p, &len);
    unsigned descriptors;
    int alive;
    tenrec_error err;

    assert_status(open_with(ours, TEST_MS, &s, &err), &err);
    alive = member();
    descriptors = process_descriptors();
    memory = heap_use();
    members = atomic_load(&begun);
    atomic_store(&over, false);
    assert_int_equal(pthread_create(&thread, NULL, count_on, s), 0);
    members += come_and_go(fd, window, MANY, hello, len, alive);
    atomic_store(&over, true);
    pthread_join(thread, &failed);
    assert_null(failed);
    assert_becomes(process_descriptors() <= descriptors);
    assert_becomes(heap_use() < memory + LEFT_BYTES);
    assert_int_equal(atomic_load(&begun), members);
    tenrec_store_close(s);
    proof_close(p);
    close(alive);
}

/* Workers that dial at once: the server accepts the last of them before it reads from the first. */
TEST_WITH(first_of_more_workers_than_the_backlog_may_prove_the_secret, start_closed, stop)
{
    enum { WORKERS = 1500 };
    static int fd[WORKERS];
    char sent[2 * PROOF_RECORD_MAX];
    const int n = process_may_open(2 * WORKERS + 200) ? WORKERS : 200;

    for (int i = 0; i < n; i++)
        fd[i] = dial();
    close(member()); /* accepted behind them */
    prove(fd[0], sent);
    for (int i = 0; i < n; i++)
        close(fd[i]);
}

/* A process with few descriptors, half of them for the clients' ends. */
TEST_WITH(stranger_gives_way_before_a_silent_member, start_closed, stop)
{
    enum { FEW = 128, SILENT = 60 };
    char sent[2 * PROOF_RECORD_MAX];
    struct rlimit before, few;
    int fd[SILENT], alive, silent;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = FEW;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    alive = member();
    silent = dial();
    prove(silent, sent);
    for (int i = 0; i < SILENT; i++) {
        fd[i] = dial();
        only_the_member_was_heard(alive);
    }
    is_closed(fd[0]);
    say(silent, HELLO);
    hear(silent, "78563412");
    for (int i = 1; i < SILENT; i++)
        close(fd[i]);
    close(silent);
    close(alive);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}
