/* SPDX-License-Identifier: Apache-2.0 */
/* tls_kernel_test.c - sessions that the kernel may encrypt. Where it cannot, or libssl is older
 * than 3.2, all cases run in the library; script/ci/ktls-test demands the kernel. */
#include "two.h"

#include "security/tls/tls_session_inside.h"

#include <netinet/in.h>
#include <openssl/crypto.h>
#include <poll.h>

enum { DIALLER, LISTENER };

#define BY_LIBRARY "encrypts: library, decrypts: library"
#define BY_KERNEL "encrypts: kernel, decrypts: kernel"
#define SOME_BYTES ((size_t)3 << 20)

static bool demanded(void)
{
    return getenv("TENREC_TEST_KERNEL_TLS") != NULL;
}

static bool usable_with(const char *text)
{
    char path[] = "/tmp/tls_kernel.XXXXXX";
    const int fd = mkstemp(path);
    bool usable;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    usable = tls_kernel_usable(path);
    unlink(path);
    return usable;
}

TEST(kernel_is_used_only_if_it_can_change_keys)
{
    const bool openssl = OPENSSL_version_major() > 3 || OPENSSL_version_minor() >= 2;

    assert_false(tls_kernel_usable("/nowhere/tls_stat"));
    assert_false(usable_with(""));
    assert_false(usable_with("TlsCurrTxSw\t0\nTlsTxSw\t0\nTlsRxNoPadViolation\t0\n"));
    assert_int_equal(usable_with("TlsTxSw\t0\nTlsRxRekeyOk\t0\nTlsTxRekeyOk\t0\n"), openssl);
}

/* Connects a socket of TCP; returns the other end. */
static int connect_one(int dialler)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t len = sizeof at;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int other;

    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
    assert_int_equal(connect(dialler, (struct sockaddr *)&at, sizeof at), 0);
    other = accept(listener, NULL, NULL);
    assert_true(other >= 0);
    assert_int_equal(fcntl(dialler, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(fcntl(other, F_SETFL, O_NONBLOCK), 0);
    close(listener);
    return other;
}

/* Waits until `reader` can be read, or `writer` (-1: none) written. */
static void wait_for(int reader, int writer)
{
    struct pollfd p[] = { { .fd = reader, .events = POLLIN }, { .fd = writer, .events = POLLOUT } };

    assert_true(poll(p, 2, 10000 * (int)testing_slow()) > 0);
}

static void open_side(struct two *x, int i, struct tls *t)
{
    tenrec_error err;

    assert_status(tls_session_open(t, x->fd[i], (enum tls_side)i, &x->side[i], &err), &err);
    x->status[i] = TENREC_EAGAIN;
}

static void shake_two(struct two *x)
{
    for (int i = 0; x->status[0] == TENREC_EAGAIN || x->status[1] == TENREC_EAGAIN; i = !i) {
        if (x->status[i] != TENREC_EAGAIN)
            continue;
        x->status[i] = tls_session_shake(x->side[i], &x->err[i]);
        if (x->status[i] == TENREC_EAGAIN && x->status[!i] == TENREC_OK)
            wait_for(x->fd[i], -1);
    }
    for (int i = 0; i < 2; i++)
        assert_status(x->status[i], &x->err[i]);
}

/* Sessions over sockets of TCP, or of the family that no kernel encrypts. */
static void open_two(struct two *x, struct tls *dialler, struct tls *listener, bool tcp)
{
    memset(x, 0, sizeof *x);
    if (tcp) {
        x->fd[DIALLER] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        x->fd[LISTENER] = connect_one(x->fd[DIALLER]);
    } else {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, x->fd),
                         0);
    }
    open_side(x, DIALLER, dialler);
    open_side(x, LISTENER, listener);
    shake_two(x);
}

/* Sends `len` bytes from one side to the other in two pieces and receives them. */
static void must_carry(struct two *x, int from, size_t len)
{
    unsigned char *out = malloc(len), *in = calloc(len, 1);
    size_t written = 0, got = 0;

    assert_true(out && in);
    for (size_t i = 0; i < len; i++)
        out[i] = (unsigned char)(i * 31 + (i >> 8));
    while (got < len) {
        const size_t left = len - written, head = left < 40 ? left : 40;
        struct iovec iov[] = { { out + written, head }, { out + written + head, left - head } };
        struct iovec to = { in + got, len - got };
        ssize_t n = left ? tls_session_write(x->side[from], iov, 2) : 0;

        assert_true(n >= 0 || n == -EAGAIN);
        written += n > 0 ? (size_t)n : 0;
        n = tls_session_read(x->side[!from], &to, 1);
        assert_true(n > 0 || n == -EAGAIN);
        got += n > 0 ? (size_t)n : 0;
        if (n < 0)
            wait_for(x->fd[!from], written < len ? x->fd[from] : -1);
    }
    assert_memory_equal(in, out, len);
    free(out);
    free(in);
}

/* Data around changes of both keys, which the writers make when a key has had its records. */
static void must_carry_over_changes(struct two *x)
{
    for (int round = 0; round < 3; round++)
        for (int from = 0; from < 2; from++) {
            must_carry(x, from, 1);
            must_carry(x, from, SOME_BYTES);
            x->side[from]->records = TLS_RECORDS_PER_KEY - !x->side[from]->kernel_sends;
        }
}

static struct tls *wanted(bool kernel)
{
    struct tls *t = two_of_secret(7);

    t->kernel = kernel;
    return t;
}

/* The kernel takes no key for a socket of Unix. */
TEST(session_stays_in_the_library_when_the_kernel_refuses)
{
    struct tls *t = wanted(true);
    struct two x;

    open_two(&x, t, t, false);
    for (int i = 0; i < 2; i++)
        assert_text_has(tls_session_describe(x.side[i]), BY_LIBRARY);
    must_carry_over_changes(&x);
    two_close(&x);
    tls_drop(t);
}

TEST(session_is_encrypted_by_the_kernel_where_that_is_usable)
{
    struct tls *t = two_of_secret(7);
    struct two x;

    assert_true(t->kernel || !demanded());
    open_two(&x, t, t, true);
    for (int i = 0; i < 2; i++)
        assert_text_has(tls_session_describe(x.side[i]), t->kernel ? BY_KERNEL : BY_LIBRARY);
    must_carry_over_changes(&x);
    for (int i = 0; i < 2; i++)
        assert_int_equal(x.side[i]->wire.kernel != NULL, t->kernel);
    two_close(&x);
    tls_drop(t);
}

/* The kernel refuses a socket that is not connected yet. */
TEST(session_opened_before_its_connection_is_encrypted_by_the_kernel)
{
    struct tls *t = two_of_secret(7);
    struct two x = { 0 };

    x.fd[DIALLER] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    open_side(&x, DIALLER, t);
    x.fd[LISTENER] = connect_one(x.fd[DIALLER]);
    open_side(&x, LISTENER, t);
    shake_two(&x);
    for (int i = 0; i < 2; i++)
        assert_text_has(tls_session_describe(x.side[i]), t->kernel ? BY_KERNEL : BY_LIBRARY);
    must_carry_over_changes(&x);
    two_close(&x);
    tls_drop(t);
}

TEST(session_of_the_kernel_and_one_of_the_library_understand_each_other)
{
    struct tls *t[] = { two_of_secret(7), two_of_secret(7) };
    struct two x;

    tls_forbid_kernel(t[1]);
    for (int i = 0; i < 2; i++) {
        open_two(&x, t[i], t[!i], true);
        assert_text_has(tls_session_describe(x.side[!i]), BY_LIBRARY);
        must_carry_over_changes(&x);
        two_close(&x);
    }
    tls_drop(t[0]);
    tls_drop(t[1]);
}

/* Both sides change their keys while the socket of one is full. */
TEST(session_changes_keys_with_a_full_socket)
{
    static char bytes[64 << 10];
    const size_t all = 16 * sizeof bytes;
    struct tls *t = two_of_secret(7);
    struct tls_session *writer, *reader;
    size_t sent = 0, got = 0;
    bool full = false;
    struct two x;

    open_two(&x, t, t, true);
    writer = x.side[LISTENER];
    reader = x.side[DIALLER];
    for (int i = 0; i < 2; i++)
        assert_int_equal(setsockopt(x.fd[i], SOL_SOCKET, i ? SO_SNDBUF : SO_RCVBUF,
                                    &(int){ sizeof bytes }, sizeof(int)),
                         0);
    while (got < all) {
        struct iovec iov = { bytes, all - sent < sizeof bytes ? all - sent : sizeof bytes };
        ssize_t n = iov.iov_len ? tls_session_write(writer, &iov, 1) : -EAGAIN;

        assert_true(n > 0 || n == -EAGAIN);
        if (n > 0) {
            sent += (size_t)n;
        } else if (!full) {
            full = true;
            for (int i = 0; i < 2; i++)
                x.side[i]->records = TLS_RECORDS_PER_KEY - !x.side[i]->kernel_sends;
            assert_true(tls_session_write(writer, &iov, 1) != -EPROTO);
            must_carry(&x, DIALLER, 3);
        } else {
            iov = (struct iovec){ bytes, sizeof bytes };
            n = tls_session_read(reader, &iov, 1);
            assert_true(n > 0 || n == -EAGAIN);
            got += n > 0 ? (size_t)n : 0;
            if (n < 0)
                wait_for(x.fd[DIALLER], sent < all ? x.fd[LISTENER] : -1);
        }
    }
    assert_true(full && got == sent);
    must_carry_over_changes(&x);
    two_close(&x);
    tls_drop(t);
}

/* The listener answers with a change of its own key. */
TEST(session_answers_a_request_to_change_keys)
{
    struct tls *t = two_of_secret(7);
    struct two x;

    open_two(&x, t, t, true);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(SSL_key_update(x.side[DIALLER]->ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        if (!x.side[DIALLER]->kernel_sends)
            must_carry(&x, DIALLER, 3);
        else
            assert_int_equal(SSL_do_handshake(x.side[DIALLER]->ssl), 1);
        must_carry(&x, DIALLER, 20000);
        must_carry(&x, LISTENER, 20000);
    }
    two_close(&x);
    tls_drop(t);
}

/* What the peer has sent without data is forgotten with the next data, also where the kernel
 * decrypts it. */
TEST(session_changes_keys_for_ever_while_data_comes)
{
    struct tls *t = two_of_secret(7);
    struct two x;

    open_two(&x, t, t, true);
    for (int i = 0; i < 3; i++) {
        x.side[LISTENER]->wire.dataless = TLS_DATALESS_MAX;
        must_carry(&x, DIALLER, 20000);
        x.side[DIALLER]->records = TLS_RECORDS_PER_KEY - !x.side[DIALLER]->kernel_sends;
        must_carry(&x, DIALLER, 20000);
    }
    two_close(&x);
    tls_drop(t);
}

TEST(session_over_tcp_tells_the_end)
{
    struct tls *t = two_of_secret(7);
    char byte;
    struct iovec to = { &byte, 1 };
    struct two x;

    open_two(&x, t, t, true);
    assert_int_equal(tls_session_read(x.side[LISTENER], &to, 1), -EAGAIN);
    assert_true(tls_session_is_drained(x.side[LISTENER]));
    shutdown(x.fd[DIALLER], SHUT_WR);
    wait_for(x.fd[LISTENER], -1);
    assert_int_equal(tls_session_read(x.side[LISTENER], &to, 1), 0);
    two_close(&x);
    tls_drop(t);
}

TEST(session_over_tcp_ends_when_plain_bytes_come)
{
    static const unsigned char record[] = { 23, 3,  3,  0,  20, 1,  2,  3,  4,  5,  6,  7, 8,
                                            9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20 };
    struct tls *t = two_of_secret(7), *plain = two_of_secret(7);
    char byte;
    struct iovec to = { &byte, 1 };
    struct two x;

    tls_forbid_kernel(plain);
    open_two(&x, plain, t, true);
    assert_int_equal(send(x.fd[DIALLER], record, sizeof record, 0), sizeof record);
    wait_for(x.fd[LISTENER], -1);
    assert_int_equal(tls_session_read(x.side[LISTENER], &to, 1), -EPROTO);
    assert_true(*tls_session_reason(x.side[LISTENER]));
    two_close(&x);
    tls_drop(t);
    tls_drop(plain);
}
