/* SPDX-License-Identifier: Apache-2.0 */
/* store_tls_test.c - servers that a client of the modes tls and mtls does not accept, byte by byte,
 * and its idle connections. */
#include "../support/tls_site.h"
#include "loopback.h"

#include "core/base/clock.h"
#include "group/store/store_call.h"
#include "group/store/store_dial.h"
#include "security/tls/tls.h"

#include <errno.h>
#include <stdatomic.h>

#define OURS "the secret of this group"
#define OTHER "the secret of another group"

enum { TLS, MTLS, MODES };

static struct security *security_in(int mode)
{
    return mode == TLS ? tls_site_secret(OURS, PLAIN_NONE)
                       : tls_site_certificates("ours", "ours", NULL, PLAIN_NONE);
}

/* A server of one connection that sends at most `most` bytes of its handshake. */
struct server {
    int fd;
    struct security *security; /* borrows */
    size_t most;
    bool echoes; /* the client's bytes, instead */
    size_t n_sent;
};

static void server_send(struct server *s, const void *data, size_t len)
{
    const size_t left = s->most - s->n_sent, n = len < left ? len : left;

    (void)!send(s->fd, data, n, MSG_NOSIGNAL);
    s->n_sent += n;
}

static void *serve(void *arg)
{
    struct server *s = arg;
    struct tls_session *tls;
    uint8_t in[16 << 10];
    size_t len;
    ssize_t n;
    const void *out;
    tenrec_error err;

    assert_status(tls_session_open(s->security->tls, -1, TLS_LISTENER, &tls, &err), &err);
    while (s->n_sent < s->most && (n = recv(s->fd, in, sizeof in, 0)) > 0) {
        if (s->echoes) {
            server_send(s, in, (size_t)n);
            continue;
        }
        tls_session_feed(tls, in, (size_t)n, NULL);
        tls_session_shake(tls, NULL);
        out = tls_session_output(tls, &len);
        server_send(s, out, len);
    }
    shutdown(s->fd, SHUT_WR);
    while (recv(s->fd, in, sizeof in, 0) > 0)
        ;
    tls_session_close(tls);
    return NULL;
}

static tenrec_status shake_on(int fd, struct security *ours, tenrec_error *err)
{
    struct store_conn c = { .fd = fd };
    tenrec_status st = store_tls_shake(&c, ours, clock_deadline_ms(TEST_MS), err);

    assert_int_equal(c.tls != NULL, st == TENREC_OK);
    tls_session_close(c.tls);
    return st;
}

static tenrec_status shake_with(struct server *s, struct security *ours, tenrec_error *err)
{
    int pair[2];
    pthread_t thread;
    tenrec_status st;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    s->fd = pair[1];
    assert_int_equal(pthread_create(&thread, NULL, serve, s), 0);
    st = shake_on(pair[0], ours, err);
    close(pair[0]);
    pthread_join(thread, NULL);
    close(pair[1]);
    return st;
}

static struct server honest(struct security *security)
{
    return (struct server){ .security = security, .most = SIZE_MAX };
}

/* Each byte of the first and of the last records, and some of the certificate between them. */
static size_t cut_step(size_t at, size_t len)
{
    return at > 150 && at + 150 < len ? 7 : 1;
}

TEST_WITH(client_refuses_a_handshake_that_is_cut_at_any_byte, tls_site_make, tls_site_remove)
{
    for (int mode = 0; mode < MODES; mode++) {
        struct security *ours = security_in(mode);
        struct server whole = honest(ours);
        tenrec_error err;

        assert_status(shake_with(&whole, ours, &err), &err);
        assert_true(whole.n_sent > 100);
        /* A signature is some bytes shorter at times; the last record is of 58. */
        for (size_t most = 0; most + 8 < whole.n_sent; most += cut_step(most, whole.n_sent)) {
            struct server cut = honest(ours);
            cut.most = most;
            assert_int_equal(shake_with(&cut, ours, &err), TENREC_EPEER_LOST);
            if (most == 0)
                assert_text_has(err.text, "the store speaks no TLS");
        }
        security_drop(ours);
    }
}

static void must_refuse(struct security *theirs, int mode, bool echoes, const char *text)
{
    struct security *ours = security_in(mode);
    struct server s = honest(theirs);
    tenrec_error err;

    s.echoes = echoes;
    assert_int_equal(shake_with(&s, ours, &err), TENREC_EPERM);
    assert_text_has(err.text, text);
    security_drop(ours);
    security_drop(theirs);
}

TEST_WITH(client_refuses_a_server_that_gives_another_proof, tls_site_make, tls_site_remove)
{
    must_refuse(tls_site_secret(OTHER, PLAIN_NONE), TLS, false, "another group secret");
    must_refuse(tls_site_certificates("theirs", "ours", NULL, PLAIN_NONE), MTLS, false,
                "certificate is refused");
    for (int mode = 0; mode < MODES; mode++)
        must_refuse(security_in(mode), mode, true, "security mode '");
}

TEST_WITH(client_refuses_what_is_no_tls, tls_site_make, tls_site_remove)
{
    static const char *const bad[] = { "220 mail.example ESMTP\r\n", "\xff\xff\xff\xff\xff\xff",
                                       "TNRP\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
                                       "\x16\xff\xff\xff\xff\xff\xff\xff" };
    tenrec_error err;

    for (int mode = 0; mode < MODES; mode++) {
        struct security *ours = security_in(mode);
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            int pair[2];
            assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
            assert_int_equal(send(pair[1], bad[i], strlen(bad[i]), MSG_NOSIGNAL), strlen(bad[i]));
            assert_int_equal(shake_on(pair[0], ours, &err), TENREC_EPERM);
            assert_text_has(err.text, "speaks no TLS");
            close(pair[0]);
            close(pair[1]);
        }
        security_drop(ours);
    }
}

/* ---- a store that hangs --------------------------------------------------------------- */

static struct store_dial dial_to(uint16_t port, const struct security *security)
{
    struct store_dial d = { .security = security, .dialect = STORE_DIALECT_2_2 };
    tenrec_error err;

    assert_status(resolve_host("127.0.0.1", port, clock_deadline_ms(TEST_MS), d.address,
                               &d.n_addresses, &err),
                  &err);
    return d;
}

/* The kernel accepts for it, and no process answers. */
TEST_WITH(client_handshake_ends_at_its_deadline, tls_site_make, tls_site_remove)
{
    struct security *ours = security_in(TLS);
    struct store_conn *c;
    uint16_t port;
    const int listener = listen_here(&port);
    const struct store_dial d = dial_to(port, ours);
    tenrec_error err;

    assert_status(store_dial_again(&d, clock_deadline_ms(TEST_MS), &c, &err), &err);
    assert_int_equal(store_dial_greet(&d, c, clock_deadline_ms(20), &err), TENREC_ETIMEDOUT);
    assert_text_has(err.text, "does not answer in TLS");
    store_conn_drop(c);
    security_drop(ours);
    close(listener);
}

struct dialled {
    struct store_client client;
    atomic_bool ended;
    tenrec_status st;
    tenrec_error err;
};

static void *call_until_cut(void *arg)
{
    struct dialled *d = arg;
    struct store_call c;

    d->st = store_call_begin(&c, &d->client, CLOCK_NEVER, &d->err);
    d->st = store_call_end(&c, d->st);
    atomic_store(&d->ended, true);
    return NULL;
}

/* It hangs before its first byte, or in the middle of its first record. */
TEST_WITH(client_handshake_ends_when_cut_by_another_thread, tls_site_make, tls_site_remove)
{
    for (int mode = 0; mode < MODES; mode++)
        for (int half = 0; half < 2; half++) {
            struct dialled d = { .client = { .lock = PTHREAD_MUTEX_INITIALIZER } };
            pthread_t thread;
            uint16_t port;
            int fd = -1;
            const int listener = listen_here(&port);

            d.client.security = security_in(mode);
            d.client.dial = dial_to(port, d.client.security);
            assert_int_equal(pthread_create(&thread, NULL, call_until_cut, &d), 0);
            if (half) {
                fd = accept(listener, NULL, NULL);
                assert_int_equal(send(fd, "\x16\3\3\0\x7a\2", 6, MSG_NOSIGNAL), 6);
            }
            assert_becomes((store_client_cut(&d.client), atomic_load(&d.ended)));
            pthread_join(thread, NULL);
            assert_int_equal(d.st, TENREC_EPEER_LOST);
            store_client_finish(&d.client);
            close(listener);
            if (half)
                close(fd);
        }
}

/* ---- idle connections -------------------------------------------------------------------- */

static void shake_both(struct tls_session *side[2])
{
    tenrec_status st[2] = { TENREC_EAGAIN, TENREC_EAGAIN };

    for (int i = 0; i < 20; i++)
        if (st[i % 2] == TENREC_EAGAIN)
            st[i % 2] = tls_session_shake(side[i % 2], NULL);
    assert_int_equal(st[0], TENREC_OK);
    assert_int_equal(st[1], TENREC_OK);
}

TEST_WITH(idle_connection_over_tls_is_quiet_until_data_or_the_end_comes, tls_site_make,
          tls_site_remove)
{
    struct security *ours = security_in(MTLS);
    struct tls_session *side[2];
    const struct iovec byte = { "x", 1 };
    int pair[2];
    tenrec_error err;

    for (int speaks = 0; speaks < 2; speaks++) {
        struct store_conn c = { 0 };

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair),
                         0);
        for (int i = 0; i < 2; i++)
            assert_status(tls_session_open(ours->tls, pair[i], (enum tls_side)i, &side[i], &err),
                          &err);
        shake_both(side);
        c.fd = pair[0];
        c.tls = side[0];
        assert_true(store_conn_quiet(&c));
        if (speaks)
            assert_int_equal(tls_session_write(side[1], &byte, 1), 1);
        else
            shutdown(pair[1], SHUT_WR);
        assert_false(store_conn_quiet(&c));
        for (int i = 0; i < 2; i++) {
            tls_session_close(side[i]);
            close(pair[i]);
        }
    }
    security_drop(ours);
}
