/* SPDX-License-Identifier: Apache-2.0 */
/* tls_kernel.c - sessions whose records the kernel encrypts and decrypts (kTLS).
 *
 * OpenSSL makes the handshake and every change of keys, and gives the keys to the kernel through
 * its own BIO of the socket (wire.kernel). Data does not pass through OpenSSL: the kernel moves it
 * between the socket and the memory of the caller. */
#include "security/tls/tls_session_inside.h"

#include <errno.h>
#include <linux/tls.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* Bytes of one read: a peer that sends as fast as we read must not keep the thread. */
#define RECEIVE_MAX ((size_t)1 << 20)
/* The kernel ends a record early when it consists of too many pieces (MAX_SKB_FRAGS is 17). */
#define RECORD_PIECES 16

/* Before 3.2 OpenSSL gives the kernel no key for receiving, and leaves the old key with it when
 * the key for sending changes. */
static bool kernel_openssl_can(void)
{
    return OPENSSL_version_major() > 3 ||
           (OPENSSL_version_major() == 3 && OPENSSL_version_minor() >= 2);
}

bool tls_kernel_usable(const char *statistics)
{
    FILE *const f = fopen(statistics, "re"); /* absent where the module is not loaded */
    char line[128];
    bool changes_keys = false;

    /* The kernel counts changes of keys since it can make them, which is 6.14. */
    while (f && fgets(line, sizeof line, f))
        changes_keys = changes_keys || strncmp(line, "TlsTxRekeyOk", 12) == 0;
    if (f)
        fclose(f);
    return changes_keys && kernel_openssl_can();
}

void tls_kernel_offer(struct tls_session *s)
{
    if (!s->tls->kernel || s->wire.fd < 0)
        return;
    s->wire.kernel = BIO_new_socket(s->wire.fd, BIO_NOCLOSE);
    if (!s->wire.kernel)
        return;
    SSL_set_options(s->ssl, SSL_OP_ENABLE_KTLS);
    /* What OpenSSL has read ahead, the kernel could not decrypt any more. */
    SSL_set_read_ahead(s->ssl, 0);
}

void tls_kernel_begin(struct tls_session *s)
{
    s->kernel_sends = tls_wire_kernel_sends(&s->wire);
    s->kernel_receives = tls_wire_kernel_receives(&s->wire);
    /* OpenSSL would offer a direction again at its next change of keys, behind our back. */
    s->wire.settled = true;
    if (s->wire.kernel && !s->kernel_sends && !s->kernel_receives) {
        /* With the option set OpenSSL 3.5 loses what it has read ahead when the peer's key changes.
         */
        SSL_clear_options(s->ssl, SSL_OP_ENABLE_KTLS);
        SSL_set_read_ahead(s->ssl, 1);
        BIO_free(s->wire.kernel);
        s->wire.kernel = NULL;
    }
#ifdef TLS_RX_EXPECT_NO_PAD
    /* Without it the kernel decrypts into memory of its own, and copies. A record with padding, of
     * which Tenrec sends none, is decrypted twice then. A refusal costs only that copy. */
    if (s->kernel_receives)
        (void)setsockopt(s->wire.fd, SOL_TLS, TLS_RX_EXPECT_NO_PAD, &(int){ 1 }, sizeof(int));
#endif
}

static ssize_t kernel_fail(struct tls_session *s, int e)
{
    if (e != EBADMSG && e != EMSGSIZE && e != EINVAL)
        return -e;
    pthread_mutex_lock(&s->lock);
    s->failed = true;
    snprintf(s->reason, sizeof s->reason, "the kernel cannot decrypt a record: %s", strerror(e));
    pthread_mutex_unlock(&s->lock);
    return -EPROTO;
}

ssize_t tls_kernel_read(struct tls_session *s, void *to, size_t room)
{
    ssize_t n;

    do
        n = recv(s->wire.fd, to, room < RECEIVE_MAX ? room : RECEIVE_MAX, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    s->carried = s->carried || n > 0;
    /* A short read may have ended at a record for OpenSSL, of which no event tells. */
    atomic_store_explicit(&s->drained, n < 0 && errno == EAGAIN, memory_order_relaxed);
    return n >= 0 ? n : kernel_fail(s, errno);
}

static bool kernel_has_room(const struct tls_session *s)
{
    struct pollfd p = { .fd = s->wire.fd, .events = POLLOUT };

    return poll(&p, 1, 0) != 0;
}

/* Begins a change of our key, or ends a change that the socket had no room for. Returns 0 or an
 * errno. Lock held.
 *
 * A reader that finds a change half done must end it before it reads, and cannot wait for room: it
 * fails the session. So none begins without room. */
static int kernel_change_key(struct tls_session *s)
{
    int r;

    ERR_clear_error();
    if (SSL_is_init_finished(s->ssl) && !kernel_has_room(s))
        return EAGAIN;
    if (SSL_is_init_finished(s->ssl))
        SSL_key_update(s->ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
    r = SSL_do_handshake(s->ssl);
    if (s->wire.broken)
        return s->wire.broken;
    if (r == 1) {
        s->records = 0;
        return 0;
    }
    r = SSL_get_error(s->ssl, r);
    if (r == SSL_ERROR_WANT_WRITE)
        return EAGAIN;
    tls_session_fail(s, r);
    return EPROTO;
}

ssize_t tls_kernel_write(struct tls_session *s, const struct iovec *iov, unsigned n)
{
    struct msghdr m = { .msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = n };
    ssize_t r;
    int e;

    if (s->failed || s->wire.broken)
        return s->failed ? -EPROTO : -s->wire.broken;
    if (s->records >= TLS_RECORDS_PER_KEY || !SSL_is_init_finished(s->ssl)) {
        e = kernel_change_key(s);
        if (e)
            return -e;
    }
    do
        r = sendmsg(s->wire.fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (r < 0 && errno == EINTR);
    if (r < 0)
        return -errno;
    /* At most so many: the kernel does not say. */
    s->records += (size_t)r / RECORD_MAX + n / RECORD_PIECES + 2;
    return r;
}
