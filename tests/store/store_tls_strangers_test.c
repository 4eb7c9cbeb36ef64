/* SPDX-License-Identifier: Apache-2.0 */
/* store_tls_strangers_test.c - strangers at a store that speaks TLS: no byte of theirs reaches a
 * session. */
#include "tls_hand.h"

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
    assert_int_equal(open_with(client, 200, &s, &err), TENREC_EPERM);
    assert_text_has(err.text, "refuses this worker's certificate");
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
