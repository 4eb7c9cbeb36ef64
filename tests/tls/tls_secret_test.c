/* SPDX-License-Identifier: Apache-2.0 */
/* tls_secret_test.c - sessions by a key of the group secret, and the bytes of sessions. */
#include "two.h"

#include "security/tls/tls_session_inside.h"

#include <stdio.h>

enum { DIALLER, LISTENER };

static void must_shake(struct two *x)
{
    two_shake(x);
    for (int i = 0; i < 2; i++)
        assert_status(x->status[i], &x->err[i]);
}

static struct two *open_good(struct two *x, bool sockets)
{
    struct tls *t = two_of_secret(7);

    two_open(x, t, t, sockets);
    tls_drop(t);
    must_shake(x);
    return x;
}

TEST(session_of_one_secret_is_encrypted_and_bound)
{
    uint8_t binding[2][TLS_BINDING_BYTES], other[TLS_BINDING_BYTES];
    struct two x, y;
    tenrec_error err;

    open_good(&x, true);
    open_good(&y, false);
    assert_text_has(tls_session_describe(x.side[DIALLER]), "TLSv1.3");
    for (int i = 0; i < 2; i++)
        assert_status(tls_session_binding(x.side[i], binding[i], &err), &err);
    assert_memory_equal(binding[0], binding[1], TLS_BINDING_BYTES);
    assert_status(tls_session_binding(y.side[0], other, &err), &err);
    assert_memory_not_equal(binding[0], other, TLS_BINDING_BYTES);
    two_close(&x);
    two_close(&y);
}

/* The configuration of this test asks for it (ktls.cnf). OpenSSL 3.5 then loses what it has read
 * ahead when the peer's key changes. */
TEST(session_asks_for_no_kernel_that_the_configuration_wants)
{
    struct two x;

    open_good(&x, false);
    for (int i = 0; i < 2; i++)
        assert_false(SSL_get_options(x.side[i]->ssl) & SSL_OP_ENABLE_KTLS);
    two_close(&x);
}

static void must_refuse(struct tls *dialler, struct tls *listener, const char *text)
{
    struct two x;

    two_open(&x, dialler, listener, true);
    two_shake(&x);
    assert_int_equal(x.status[LISTENER], TENREC_EPERM);
    assert_int_equal(x.status[DIALLER], TENREC_EPERM);
    assert_text_has(x.err[LISTENER].text, text);
    assert_text_has(x.err[DIALLER].text, text);
    two_close(&x);
    tls_drop(dialler);
    tls_drop(listener);
}

TEST(session_of_two_secrets_is_refused_and_both_sides_tell_why)
{
    must_refuse(two_of_secret(1), two_of_secret(2), "another group secret");
}

TEST(session_is_refused_when_the_peer_speaks_no_tls)
{
    static const char plain[] = "GET / HTTP/1.0\r\n\r\n";
    struct tls *t = two_of_secret(1);
    struct two x;

    two_open(&x, t, t, true);
    assert_int_equal(send(x.fd[DIALLER], plain, sizeof plain - 1, 0), sizeof plain - 1);
    assert_int_equal(tls_session_shake(x.side[LISTENER], &x.err[0]), TENREC_EPROTOCOL);
    assert_text_has(x.err[0].text, "no TLS");
    two_close(&x);
    tls_drop(t);
}

/* A dialler that ends at each byte of its first flight: the listener never gets beyond it. */
TEST(session_survives_a_peer_that_ends_at_any_byte)
{
    struct tls *t = two_of_secret(1);
    size_t len;
    const char *hello;
    struct two x;

    two_open(&x, t, t, false);
    assert_int_equal(tls_session_shake(x.side[DIALLER], &x.err[0]), TENREC_EAGAIN);
    hello = tls_session_output(x.side[DIALLER], &len);
    for (size_t cut = 0; cut < len; cut++) {
        struct two y;

        two_open(&y, t, t, true);
        assert_int_equal(send(y.fd[DIALLER], hello, cut, 0), cut);
        assert_int_equal(tls_session_shake(y.side[LISTENER], &y.err[0]), TENREC_EAGAIN);
        assert_int_equal(shutdown(y.fd[DIALLER], SHUT_WR), 0);
        assert_int_equal(tls_session_shake(y.side[LISTENER], &y.err[0]), TENREC_ECONNECT);
        two_close(&y);
    }
    two_close(&x);
    tls_drop(t);
}

/* A record that a process on the way has changed. */
TEST(session_ends_when_a_record_was_changed)
{
    struct iovec iov = { (char[]){ "some text" }, 9 };
    char in[64], changed[256];
    struct iovec to = { in, sizeof in };
    const char *out;
    size_t len;
    struct two x;
    tenrec_error err;

    open_good(&x, false);
    assert_int_equal(tls_session_write(x.side[DIALLER], &iov, 1), 9);
    out = tls_session_output(x.side[DIALLER], &len);
    assert_true(len > 9 && len < sizeof changed);
    memcpy(changed, out, len);
    changed[len - 1] ^= 1;
    assert_status(tls_session_feed(x.side[LISTENER], changed, len, &err), &err);
    assert_int_equal(tls_session_read(x.side[LISTENER], &to, 1), -EPROTO);
    assert_true(*tls_session_reason(x.side[LISTENER]));
    two_close(&x);
}

/* ---- bytes ---- */

static unsigned char pattern(size_t at)
{
    return (unsigned char)(at * 31 + (at >> 8));
}

/* Writes `len` bytes in pieces of all sizes while the other side reads; the socket is full again
 * and again. */
static void must_transfer(struct two *x, size_t len)
{
    unsigned char *out = malloc(len), *in = malloc(len);
    size_t written = 0, got = 0;

    assert_true(out && in);
    for (size_t i = 0; i < len; i++)
        out[i] = pattern(i);
    while (got < len) {
        const size_t left = len - written, head = left < 40 ? left : 40;
        const size_t rest = left - head < 50000 ? left - head : 50000;
        struct iovec iov[] = { { out + written, head },
                               { out + written + head, rest },
                               { out + written + head + rest, left - head - rest } };
        struct iovec to = { in + got, len - got };
        ssize_t n = left ? tls_session_write(x->side[DIALLER], iov, 3) : 0;

        assert_true(n >= 0 || n == -EAGAIN);
        written += n > 0 ? (size_t)n : 0;
        if (x->fd[0] < 0)
            two_carry(x, DIALLER);
        n = tls_session_read(x->side[LISTENER], &to, 1);
        assert_true(n > 0 || n == -EAGAIN);
        got += n > 0 ? (size_t)n : 0;
        assert_true(n == -EAGAIN || got == len || tls_session_is_drained(x->side[LISTENER]));
    }
    assert_int_equal(written, len);
    assert_memory_equal(in, out, len);
    free(out);
    free(in);
}

TEST(session_carries_bytes_of_any_number)
{
    struct two x;

    for (int sockets = 0; sockets < 2; sockets++) {
        open_good(&x, sockets);
        for (size_t len = 1; len < (size_t)4 << 20; len = len * 3 + 1)
            must_transfer(&x, len);
        two_close(&x);
    }
}

/* What has been encrypted while the socket was full goes before what is given again. */
TEST(session_keeps_what_the_socket_did_not_take)
{
    const size_t len = (size_t)8 << 20;
    unsigned char *all = malloc(len), *in = malloc(len);
    size_t written = 0, got = 0;
    struct two x;

    assert_true(all && in);
    for (size_t i = 0; i < len; i++)
        all[i] = pattern(i);
    open_good(&x, true);
    while (got < len) {
        struct iovec iov = { all + written, len - written };
        struct iovec to = { in + got, len - got };
        ssize_t n;

        do {
            n = iov.iov_len ? tls_session_write(x.side[DIALLER], &iov, 1) : -EAGAIN;
            if (n > 0) {
                written += (size_t)n;
                iov = (struct iovec){ all + written, len - written };
            }
        } while (n > 0);
        assert_int_equal(n, -EAGAIN);
        n = tls_session_read(x.side[LISTENER], &to, 1);
        assert_true(n > 0);
        got += (size_t)n;
    }
    assert_memory_equal(in, all, len);
    two_close(&x);
    free(all);
    free(in);
}

TEST(session_tells_the_end)
{
    char byte;
    struct iovec to = { &byte, 1 };
    struct two x;

    open_good(&x, true);
    assert_int_equal(tls_session_read(x.side[LISTENER], &to, 1), -EAGAIN);
    assert_true(tls_session_is_drained(x.side[LISTENER]));
    close(x.fd[DIALLER]);
    x.fd[DIALLER] = -1;
    assert_int_equal(tls_session_read(x.side[LISTENER], &to, 1), 0);
    two_close(&x);
}

TEST(session_writes_to_a_closed_socket_without_a_signal)
{
    struct iovec from = { (char[]){ "x" }, 1 };
    struct two x;

    open_good(&x, true);
    close(x.fd[LISTENER]);
    x.fd[LISTENER] = -1;
    assert_int_equal(tls_session_write(x.side[DIALLER], &from, 1), -EPIPE);
    two_close(&x);
}

/* ---- changes of keys ---- */

/* The listener's read after `n` changes of the dialler's keys. */
static ssize_t read_after_changes(struct two *x, int n, int kind)
{
    char in;
    struct iovec to = { &in, 1 };
    ssize_t r = -EAGAIN;

    for (int i = 0; i < n && r == -EAGAIN; i++) {
        assert_int_equal(SSL_key_update(x->side[DIALLER]->ssl, kind), 1);
        assert_int_equal(SSL_do_handshake(x->side[DIALLER]->ssl), 1);
        two_carry(x, DIALLER);
        r = tls_session_read(x->side[LISTENER], &to, 1);
    }
    return r;
}

TEST(session_carries_bytes_between_changes_of_keys)
{
    struct two x;

    open_good(&x, false);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(read_after_changes(&x, 100, SSL_KEY_UPDATE_REQUESTED), -EAGAIN);
        must_transfer(&x, 3);
        two_carry(&x, LISTENER); /* one answer to a hundred requests */
    }
    two_close(&x);
}

/* OpenSSL itself would go on for ever. */
TEST(session_fails_when_the_peer_changes_keys_and_sends_no_data)
{
    struct two x;

    open_good(&x, false);
    assert_int_equal(read_after_changes(&x, 10000, SSL_KEY_UPDATE_NOT_REQUESTED), -EPROTO);
    assert_text_has(tls_session_reason(x.side[LISTENER]), "bytes of TLS without data");
    two_close(&x);
}
