/* SPDX-License-Identifier: Apache-2.0 */
/* tls_kernel_fault_test.c - sessions above a kernel of the test's, which takes keys and bytes, or
 * not, when the test says. */
#include "two.h"

#include "security/tls/tls_session_inside.h"

enum { DIALLER, LISTENER };

/* OpenSSL's own: gives the kernel a key, for sending if the number is not 0. */
#define BIO_CTRL_SET_KTLS 72

/* Has no room for what is sent, and an endless stream of bytes to receive. */
struct kernel {
    BIO_METHOD *method;
    bool sends, receives;
    int keys, writes;
};

static int kernel_write(BIO *bio, const char *data, int len)
{
    struct kernel *k = BIO_get_data(bio);

    (void)data;
    (void)len;
    k->writes++;
    BIO_clear_retry_flags(bio);
    BIO_set_retry_write(bio);
    return -1;
}

static int kernel_read(BIO *bio, char *to, int room)
{
    BIO_clear_retry_flags(bio);
    memset(to, 0, (size_t)room);
    return room;
}

static long kernel_control(BIO *bio, int command, long number, void *arg)
{
    struct kernel *k = BIO_get_data(bio);

    (void)arg;
    switch (command) {
    case BIO_CTRL_SET_KTLS:
        k->keys++;
        *(number ? &k->sends : &k->receives) = true;
        return 1;
    case BIO_CTRL_GET_KTLS_SEND:
        return k->sends;
    case BIO_CTRL_GET_KTLS_RECV:
        return k->receives;
    default:
        return command == BIO_CTRL_FLUSH;
    }
}

/* Puts the kernel below a session. */
static void kernel_put(struct kernel *k, struct tls_session *s)
{
    BIO *bio;

    k->method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "kernel");
    assert_non_null(k->method);
    BIO_meth_set_write(k->method, kernel_write);
    BIO_meth_set_read(k->method, kernel_read);
    BIO_meth_set_ctrl(k->method, kernel_control);
    bio = BIO_new(k->method);
    assert_non_null(bio);
    BIO_set_data(bio, k);
    BIO_set_init(bio, 1);
    /* Above a kernel OpenSSL sends from the caller's memory, and forgets a buffer of its own. */
    SSL_free_buffers(s->ssl);
    s->wire.kernel = bio;
}

static void open_two(struct two *x, struct tls *t)
{
    two_open(x, t, t, true);
    two_shake(x);
    for (int i = 0; i < 2; i++)
        assert_status(x->status[i], &x->err[i]);
}

static void close_two(struct two *x, struct kernel *k, struct tls *t)
{
    two_close(x);
    BIO_meth_free(k->method);
    tls_drop(t);
}

TEST(kernel_gets_no_direction_after_the_handshake)
{
    struct kernel k = { .receives = true };
    struct tls *t = two_of_secret(7);
    struct two x;
    BIO *bio;

    open_two(&x, t);
    kernel_put(&k, x.side[DIALLER]);
    bio = SSL_get_wbio(x.side[DIALLER]->ssl);
    assert_true(BIO_ctrl(bio, BIO_CTRL_SET_KTLS, 1, NULL) <= 0);
    assert_int_equal(k.keys, 0);
    assert_int_equal(x.side[DIALLER]->wire.broken, 0);
    assert_int_equal(BIO_ctrl(bio, BIO_CTRL_SET_KTLS, 0, NULL), 1); /* its next key */
    assert_int_equal(k.keys, 1);
    close_two(&x, &k, t);
}

TEST(session_does_not_take_the_socket_for_empty_where_the_kernel_receives)
{
    struct kernel k = { .receives = true };
    struct tls *t = two_of_secret(7);
    struct two x;
    char byte;
    size_t n;

    open_two(&x, t);
    kernel_put(&k, x.side[DIALLER]);
    x.side[DIALLER]->wire.emptied = true;
    assert_int_equal(BIO_read_ex(SSL_get_rbio(x.side[DIALLER]->ssl), &byte, 1, &n), 1);
    assert_false(x.side[DIALLER]->wire.emptied);
    close_two(&x, &k, t);
}

/* Writes to the socket until it has no room. */
static void fill(int fd)
{
    static const char bytes[4096];

    while (send(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        ;
    assert_int_equal(errno, EAGAIN);
}

TEST(session_begins_no_change_of_its_key_without_room)
{
    struct kernel k = { .sends = true };
    struct tls *t = two_of_secret(7);
    char byte = 1;
    struct iovec iov = { &byte, 1 };
    struct two x;
    struct tls_session *s;

    open_two(&x, t);
    s = x.side[DIALLER];
    kernel_put(&k, s);
    s->kernel_sends = true;
    s->records = TLS_RECORDS_PER_KEY;
    fill(x.fd[DIALLER]);
    assert_int_equal(tls_session_write(s, &iov, 1), -EAGAIN);
    assert_true(SSL_is_init_finished(s->ssl));
    assert_int_equal(k.writes, 0);
    close_two(&x, &k, t);
}

/* The reader could neither go on nor learn of room. */
TEST(session_ends_when_a_change_of_its_key_that_is_half_done_meets_the_reader)
{
    struct kernel k = { .sends = true };
    struct tls *t = two_of_secret(7);
    char byte = 1;
    struct iovec iov = { &byte, 1 };
    struct two x;
    struct tls_session *s;

    open_two(&x, t);
    s = x.side[LISTENER];
    kernel_put(&k, s);
    s->kernel_sends = true;
    s->records = TLS_RECORDS_PER_KEY;
    assert_int_equal(tls_session_write(s, &iov, 1), -EAGAIN);
    assert_int_equal(k.writes, 1);
    assert_int_equal(tls_session_write(x.side[DIALLER], &iov, 1), 1);
    for (int i = 0; i < 2; i++)
        assert_int_equal(tls_session_read(s, &iov, 1), -EPROTO);
    assert_text_has(tls_session_reason(s), "no room for a change of keys");
    assert_int_equal(tls_session_write(s, &iov, 1), -EPROTO);
    close_two(&x, &k, t);
}
