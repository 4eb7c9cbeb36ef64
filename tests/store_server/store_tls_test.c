/* SPDX-License-Identifier: Apache-2.0 */
/* store_tls_test.c - a TCP store in the modes tls and mtls: its members, clients of other modes,
 * and strangers. The bytes of the latter reach no session. */
#include "../support/tls_site.h"
#include "served.h"

#include "base/clock.h"
#include "store/store.h"
#include "store_server/store_session.h"
#include "tls/tls_session.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <stdatomic.h>
#include <sys/socket.h>

#define OURS "the secret of this group"
#define OTHER "the secret of another group"
#define PING "0d 07000000"
#define PONG "07000000"
#define MARKER "a text that no stranger may read"

/* ---- what reaches a session ----------------------------------------------------- */

static atomic_size_t fed;

void __real_store_session_feed(struct store_session *s, const void *data, size_t len);
void __wrap_store_session_feed(struct store_session *s, const void *data, size_t len);
void __wrap_store_session_feed(struct store_session *s, const void *data, size_t len)
{
    atomic_fetch_add(&fed, len);
    __real_store_session_feed(s, data, len);
}

/* ---- a store in either mode, and its clients -------------------------------------- */

enum { TLS, MTLS, MODES };

static struct security *ours;

static struct security *security_in(int mode, enum security_plain plain)
{
    return mode == TLS ? tls_site_secret(OURS, plain)
                       : tls_site_certificates("ours", "ours", NULL, plain);
}

static void start_in(int mode, enum security_plain plain)
{
    ours = security_in(mode, plain);
    start_server_with(ours);
    atomic_store(&fed, 0);
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

static void must_be_refused(struct security *security, tenrec_status st, const char *text)
{
    struct tenrec_store *s = NULL;
    tenrec_error err = { 0 };

    assert_int_equal(open_with(security, 200, &s, &err), st);
    assert_text_has(err.text, text);
    assert_null(s);
    assert_int_equal(atomic_load(&fed), 0);
    security_drop(security);
}

/* ---- a client by hand ---------------------------------------------------------------- */

struct hand {
    int fd;
    struct tls_session *tls;
    size_t n_received; /* encrypted bytes, searched for the marker */
};

/* Sends what is encrypted. Returns the bytes. */
static size_t hand_send(struct hand *h)
{
    size_t len;
    const void *data = tls_session_output(h->tls, &len);

    if (len)
        assert_int_equal(send(h->fd, data, len, MSG_NOSIGNAL), len);
    return len;
}

static void hand_receive(struct hand *h)
{
    char in[32 << 10];
    const ssize_t n = recv(h->fd, in, sizeof in, 0);
    tenrec_error err;

    assert_true(n > 0);
    assert_null(memmem(in, (size_t)n, MARKER, strlen(MARKER)));
    h->n_received += (size_t)n;
    assert_status(tls_session_feed(h->tls, in, (size_t)n, &err), &err);
}

static struct hand hand_begin(void)
{
    struct hand h = { .fd = dial() };
    tenrec_error err;

    assert_status(tls_session_open(ours->tls, -1, TLS_DIALLER, &h.tls, &err), &err);
    assert_int_equal(tls_session_shake(h.tls, &err), TENREC_EAGAIN);
    return h;
}

static struct hand hand_open(void)
{
    struct hand h = hand_begin();
    tenrec_status st;
    tenrec_error err;

    hand_send(&h);
    hand_receive(&h);
    while ((st = tls_session_shake(h.tls, &err)) == TENREC_EAGAIN)
        hand_receive(&h);
    assert_status(st, &err);
    hand_send(&h);
    return h;
}

static void hand_close(struct hand *h)
{
    tls_session_close(h->tls);
    close(h->fd);
}

static void hand_say(struct hand *h, const char *hex)
{
    unsigned char raw[4096];
    const struct iovec out = { raw, unhex(hex, raw) };

    assert_int_equal(tls_session_write(h->tls, &out, 1), out.iov_len);
    hand_send(h);
}

static void hand_read(struct hand *h, void *ret, size_t len)
{
    for (size_t at = 0; at < len;) {
        const struct iovec to = { (char *)ret + at, len - at };
        const ssize_t n = tls_session_read(h->tls, &to, 1);
        assert_true(n > 0 || n == -EAGAIN);
        if (n > 0)
            at += (size_t)n;
        else
            hand_receive(h);
    }
}

static void hand_hear(struct hand *h, const char *hex)
{
    unsigned char raw[4096], got[4096];
    const size_t n = unhex(hex, raw);

    hand_read(h, got, n);
    assert_memory_equal(got, raw, n);
}

static struct hand member(void)
{
    struct hand h = hand_open();

    hand_say(&h, HELLO);
    hand_hear(&h, "78563412");
    atomic_store(&fed, 0);
    return h;
}

static void is_closed_at_last(int fd)
{
    char sink[4096];

    shutdown(fd, SHUT_WR);
    while (recv(fd, sink, sizeof sink, 0) > 0)
        ;
    is_closed(fd);
}

/* The server has acted on all that came before, and none of it reached a session. */
static void only_the_member_was_heard(struct hand *h)
{
    assert_int_equal(atomic_load(&fed), 0);
    hand_say(h, PING);
    hand_hear(h, PONG);
    atomic_store(&fed, 0);
}

/* ---- members --------------------------------------------------------------------- */

static void *wait_for_key(void *arg)
{
    tenrec_error err;

    assert_status(tenrec_store_wait(arg, (const char *const[]){ "late" }, 1, TEST_MS, &err), &err);
    return NULL;
}

static void use_several_connections(void)
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

/* A wait keeps its connection busy: the other operations dial, and shake hands, again. */
TEST_WITH(members_use_a_store_over_tls_on_several_connections, tls_site_make, tls_site_remove)
{
    for (int mode = 0; mode < MODES; mode++) {
        start_in(mode, PLAIN_NONE);
        use_several_connections();
        stop();
    }
}

TEST_WITH(value_of_many_records_comes_back_over_tls, tls_site_make, tls_site_remove)
{
    enum { LEN = (5 << 20) + 3 };
    unsigned char *data = malloc(LEN);
    struct tenrec_store *s;
    void *got;
    size_t len;
    tenrec_error err;

    assert_non_null(data);
    for (size_t i = 0; i < LEN; i++)
        data[i] = (unsigned char)(i * 2654435761u >> 13);
    for (int mode = 0; mode < MODES; mode++) {
        start_in(mode, PLAIN_NONE);
        assert_status(open_with(ours, TEST_MS, &s, &err), &err);
        for (int i = 0; i < 3; i++) {
            assert_status(tenrec_store_set(s, "big", data, LEN, TEST_MS, &err), &err);
            assert_status(tenrec_store_get(s, "big", TEST_MS, &got, &len, &err), &err);
            assert_int_equal(len, LEN);
            assert_memory_equal(got, data, LEN);
            free(got);
        }
        tenrec_store_close(s);
        stop();
    }
    free(data);
}

/* Appends SET of "/p" with so many bytes, which has no answer. */
static void add_set(char **at, size_t bytes)
{
    *at += unhex("01" K("70"), (unsigned char *)*at);
    memcpy(*at, &(uint64_t){ bytes }, 8);
    *at += 8 + bytes;
}

/* More requests in one segment than the server decrypts at once: the answers to the first pause it,
 * with the last in its TLS session. No byte comes later that would wake it. */
static void say_more_than_a_record(struct hand *h, int gets)
{
    enum { TOTAL = 60 << 10 };
    char *const text = calloc(1, TOTAL), *at = text;
    const struct iovec out = { text, TOTAL };

    assert_non_null(text);
    for (int i = 0; i < gets; i++)
        at += unhex("03" K("6b"), (unsigned char *)at);
    add_set(&at, (size_t)(text + TOTAL - at) - 19 - 5);
    at += unhex(PING, (unsigned char *)at);
    assert_ptr_equal(at, text + TOTAL);
    assert_int_equal(tls_session_write(h->tls, &out, 1), TOTAL);
    hand_send(h);
    free(text);
}

TEST_WITH(answers_that_were_left_unread_all_come_over_tls, tls_site_make, tls_site_remove)
{
    enum { LEN = 1 << 20, GETS = 24, ROUNDS = 3 };
    char *data = calloc(1, LEN);
    unsigned char head[8];
    struct tenrec_store *s;
    struct hand h;
    tenrec_error err;

    assert_non_null(data);
    start_in(TLS, PLAIN_NONE);
    h = member();
    assert_status(open_with(ours, TEST_MS, &s, &err), &err);
    assert_status(tenrec_store_set(s, "k", data, LEN, TEST_MS, &err), &err);
    /* Its first read may be shorter at times. */
    for (int round = 0; round < ROUNDS; round++) {
        say_more_than_a_record(&h, GETS);
        for (int i = 0; i < GETS; i++) {
            hand_read(&h, head, sizeof head);
            assert_memory_equal(head, "\0\0\x10\0\0\0\0\0", sizeof head);
            hand_read(&h, data, LEN);
        }
        hand_hear(&h, PONG);
    }
    tenrec_store_close(s);
    hand_close(&h);
    stop();
    free(data);
}

/* hand_receive searches what comes. */
TEST_WITH(value_is_in_no_byte_of_the_wire, tls_site_make, tls_site_remove)
{
    unsigned char got[sizeof MARKER - 1];
    struct tenrec_store *s;
    struct hand h;
    tenrec_error err;

    for (int mode = 0; mode < MODES; mode++) {
        start_in(mode, PLAIN_NONE);
        assert_status(open_with(ours, TEST_MS, &s, &err), &err);
        assert_status(tenrec_store_set(s, "m", MARKER, sizeof got, TEST_MS, &err), &err);
        h = member();
        hand_say(&h, "03" K("6d"));
        hand_hear(&h, "2000000000000000");
        hand_read(&h, got, sizeof got);
        assert_memory_equal(got, MARKER, sizeof got);
        assert_true(h.n_received > sizeof got);
        hand_close(&h);
        tenrec_store_close(s);
        stop();
    }
}

static void *add_some(void *arg)
{
    struct tenrec_store *s;
    int64_t sum;
    tenrec_error err;

    (void)arg;
    assert_status(open_with(ours, TEST_MS, &s, &err), &err);
    for (int i = 0; i < 10; i++)
        assert_status(tenrec_store_add(s, "sum", 1, TEST_MS, &sum, &err), &err);
    tenrec_store_close(s);
    return NULL;
}

TEST_WITH(many_members_come_at_once_over_tls, tls_site_make, tls_site_remove)
{
    enum { MANY = 48 };
    pthread_t thread[MANY];
    struct tenrec_store *s;
    int64_t sum;
    tenrec_error err;

    for (int mode = 0; mode < MODES; mode++) {
        start_in(mode, PLAIN_NONE);
        for (int i = 0; i < MANY; i++)
            assert_int_equal(pthread_create(&thread[i], NULL, add_some, NULL), 0);
        for (int i = 0; i < MANY; i++)
            pthread_join(thread[i], NULL);
        assert_status(open_with(ours, TEST_MS, &s, &err), &err);
        assert_status(tenrec_store_add(s, "sum", 0, TEST_MS, &sum, &err), &err);
        assert_int_equal(sum, 10 * MANY);
        tenrec_store_close(s);
        stop();
    }
}

/* Each byte of the handshake in a segment of its own. */
TEST_WITH(member_that_sends_slowly_is_admitted, tls_site_make, tls_site_remove)
{
    for (int mode = 0; mode < MODES; mode++) {
        struct hand h;
        tenrec_status st;
        tenrec_error err;

        start_in(mode, PLAIN_NONE);
        h = hand_begin();
        do {
            size_t len;
            const char *data = tls_session_output(h.tls, &len);
            for (size_t i = 0; i < len; i++)
                assert_int_equal(send(h.fd, data + i, 1, MSG_NOSIGNAL), 1);
            if ((st = tls_session_shake(h.tls, &err)) == TENREC_EAGAIN)
                hand_receive(&h);
        } while (st == TENREC_EAGAIN);
        assert_status(st, &err);
        hand_send(&h);
        hand_say(&h, HELLO);
        hand_hear(&h, "78563412");
        hand_close(&h);
        stop();
    }
}

/* ---- plain clients ------------------------------------------------------------------ */

TEST_WITH(plain_client_is_let_in_to_a_store_over_tls_as_store_plain_says, tls_site_make,
          tls_site_remove)
{
    for (int mode = 0; mode < MODES; mode++) {
        int fd;

        start_in(mode, PLAIN_SAME_USER);
        fd = dial_2_2();
        say(fd, PING);
        hear(fd, PONG);
        close(fd);
        stop();
        start_in(mode, PLAIN_NONE);
        fd = dial();
        say(fd, HELLO);
        is_closed_at_last(fd);
        assert_int_equal(atomic_load(&fed), 0);
        stop();
    }
}

/* ---- clients of other modes ----------------------------------------------------------- */

TEST_WITH(client_of_another_mode_learns_that_of_the_store, tls_site_make, tls_site_remove)
{
    /* PLAIN_ALL: no client that proves anything falls back to a plain one. */
    start_in(TLS, PLAIN_ALL);
    must_be_refused(secured(OURS, PLAIN_ALL), TENREC_EPERM, "in security mode 'tls'");
    must_be_refused(security_in(MTLS, PLAIN_ALL), TENREC_EPERM, "security mode 'mtls'");
    stop();
    start_in(MTLS, PLAIN_ALL);
    must_be_refused(secured(OURS, PLAIN_ALL), TENREC_EPERM, "in security mode 'mtls'");
    must_be_refused(security_in(TLS, PLAIN_ALL), TENREC_EPERM, "security mode 'tls'");
    stop();
    start_in(TLS, PLAIN_NONE);
    must_be_refused(NULL, TENREC_EPERM,
                    "the store is in security mode 'tls', this process in mode 'none' (default)");
    stop();
    ours = secured(OURS, PLAIN_ALL);
    start_server_with(ours);
    for (int mode = 0; mode < MODES; mode++)
        must_be_refused(security_in(mode, PLAIN_ALL), TENREC_EPERM,
                        "the store is in security mode 'secret', this process in mode '");
    stop();
}

/* The store of torch closes at the first byte of TLS, as ours in mode none does. */
TEST_WITH(client_over_tls_falls_back_to_no_plain_store, tls_site_make, tls_site_remove)
{
    start_server();
    for (int mode = 0; mode < MODES; mode++) {
        struct security *mine = security_in(mode, PLAIN_ALL);
        struct tenrec_store *s = NULL;
        tenrec_error err;

        assert_int_equal(open_with(mine, 200, &s, &err), TENREC_EPEER_LOST);
        assert_text_has(err.text, "the store speaks no TLS, which security mode ");
        assert_null(s);
        security_drop(mine);
    }
    stop_server();
}

/* ---- strangers -------------------------------------------------------------------- */

TEST_WITH(client_that_gives_another_proof_is_refused_over_tls, tls_site_make, tls_site_remove)
{
    start_in(TLS, PLAIN_NONE);
    must_be_refused(tls_site_secret(OTHER, PLAIN_NONE), TENREC_EPERM, "another group secret");
    stop();
    start_in(MTLS, PLAIN_NONE);
    must_be_refused(tls_site_certificates("theirs", "ours", NULL, PLAIN_NONE), TENREC_EPERM,
                    "does not know the authority");
    must_be_refused(tls_site_certificates("ours", "theirs", NULL, PLAIN_NONE), TENREC_EPERM,
                    "certificate is refused");
    must_be_refused(tls_site_certificates("ours", "ours", "worker7", PLAIN_NONE), TENREC_EPERM,
                    "none of security.mtls.names");
    stop();
}

TEST_WITH(client_without_a_demanded_name_is_refused, tls_site_make, tls_site_remove)
{
    struct security *client = security_in(MTLS, PLAIN_NONE);
    struct tenrec_store *s = NULL;
    tenrec_error err;

    ours = tls_site_certificates("ours", "ours", "worker7", PLAIN_NONE);
    start_server_with(ours);
    atomic_store(&fed, 0);
    assert_int_not_equal(open_with(client, 200, &s, &err), TENREC_OK);
    assert_null(s);
    assert_int_equal(atomic_load(&fed), 0);
    security_drop(client);
    stop();
}

/* A foreign client, for Tenrec's own refuses to start with it. */
TEST_WITH(client_whose_certificate_has_expired_is_refused, tls_site_make, tls_site_remove)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(context);
    char answer[8];
    int fd;

    start_in(MTLS, PLAIN_ALL);
    fd = dial();
    assert_int_equal(SSL_use_certificate_file(ssl, tls_site_path("expired.pem"), SSL_FILETYPE_PEM),
                     1);
    assert_int_equal(SSL_use_PrivateKey_file(ssl, tls_site_path("expired.key"), SSL_FILETYPE_PEM),
                     1);
    SSL_set_fd(ssl, fd);
    assert_int_equal(SSL_connect(ssl), 1); /* the server has not seen the certificate yet */
    SSL_write(ssl, "\0\xce\xf7\x85\x3c", 5);
    assert_true(SSL_read(ssl, answer, sizeof answer) <= 0);
    assert_int_equal(atomic_load(&fed), 0);
    SSL_free(ssl);
    SSL_CTX_free(context);
    close(fd);
    stop();
}

TEST_WITH(bytes_that_are_no_handshake_reach_no_session, tls_site_make, tls_site_remove)
{
    static const char *const bad[] = {
        "16",
        "1603",
        "160301ffff",
        "16ffffffffffffffffffffffff",
        "1603010005 0100000100",
        ("160301000100 " HELLO),
        "1703030010 00000000000000000000000000000000",
        "15030300020000",
        "544e5250",
    };

    for (int mode = 0; mode < MODES; mode++) {
        struct hand alive;

        start_in(mode, PLAIN_NONE);
        alive = member();
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            int fd = dial();
            say(fd, bad[i]);
            is_closed_at_last(fd);
            only_the_member_was_heard(&alive);
        }
        hand_close(&alive);
        stop();
    }
}

/* A member's first flight, cut at every place, and a request in the place of the rest. */
TEST_WITH(handshake_that_ends_early_reaches_no_session, tls_site_make, tls_site_remove)
{
    for (int mode = 0; mode < MODES; mode++) {
        struct hand alive, h;
        const char *flight;
        size_t len;

        start_in(mode, PLAIN_NONE);
        alive = member();
        h = hand_begin();
        flight = tls_session_output(h.tls, &len);
        assert_true(len > 100);
        for (size_t cut = 0; cut <= len; cut++) {
            int fd = dial();
            assert_int_equal(send(fd, flight, cut, MSG_NOSIGNAL), cut);
            if (cut % 2)
                say(fd, HELLO);
            is_closed_at_last(fd);
        }
        only_the_member_was_heard(&alive);
        hand_close(&h);
        hand_close(&alive);
        stop();
    }
}

TEST_WITH(half_handshakes_over_tls_do_not_disturb_members, tls_site_make, tls_site_remove)
{
    enum { MANY = 600, WINDOW = 200 };
    int fd[WINDOW];

    for (int mode = 0; mode < MODES; mode++) {
        struct hand alive, h, another;
        const char *flight;
        size_t len;

        memset(fd, -1, sizeof fd);
        start_in(mode, PLAIN_NONE);
        alive = member();
        h = hand_begin();
        flight = tls_session_output(h.tls, &len);
        for (int i = 0; i < MANY; i++) {
            int *at = &fd[i % WINDOW];
            if (*at >= 0)
                close(*at);
            *at = dial();
            assert_int_equal(send(*at, flight, len, MSG_NOSIGNAL), len);
            if (i % 100 == 0) {
                only_the_member_was_heard(&alive);
                another = member(); /* a new one gets in */
                hand_close(&another);
            }
        }
        for (int i = 0; i < WINDOW; i++)
            close(fd[i]);
        hand_close(&h);
        hand_close(&alive);
        stop();
    }
}
