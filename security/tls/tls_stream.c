/* SPDX-License-Identifier: Apache-2.0 */
/* tls_stream.c - the bytes of a session, after its handshake. */
#include "security/tls/tls_session_inside.h"

#include "core/base/memory.h"

#include <errno.h>
#include <openssl/err.h>
#include <string.h>

/* A peer that sends as fast as we read must not keep the thread: others wait for it. */
#define READ_TURN ((ssize_t)1 << 20)
#define OUT_MAX ((size_t)128 << 10) /* bytes that wait for the socket, about */

/* Takes a larger buffer, once, while OpenSSL's is empty. Without a socket nothing is gained by it.
 */
static void stream_read_ahead(struct tls_session *s)
{
    /* In the middle of a record libraries before 3.0.14 free what they still use. */
    if (s->reads_ahead || s->wire.kernel || s->wire.fd < 0 ||
        strcmp(SSL_rstate_string(s->ssl), "RH") != 0)
        return;
    SSL_set_default_read_buffer_len(s->ssl, READ_AHEAD);
    s->reads_ahead = SSL_free_buffers(s->ssl) == 1;
}

/* Reads some of one record. Lock held. */
static ssize_t stream_read_record(struct tls_session *s, void *to, size_t room)
{
    size_t n = 0;
    bool drained;
    int r, kind;

    if (s->failed)
        return -EPROTO;
    if (ERR_peek_error()) /* clearing an empty queue costs as much as a small record */
        ERR_clear_error();
    r = SSL_read_ex(s->ssl, to, room, &n);
    /* As with a plain socket: what comes after a short read makes an event. */
    drained = r == 1 && s->wire.fd >= 0 && s->wire.emptied && !SSL_has_pending(s->ssl);
    atomic_store_explicit(&s->drained, drained, memory_order_relaxed);
    if (drained)
        stream_read_ahead(s);
    if (r == 1) {
        s->wire.dataless = 0;
        return (ssize_t)n;
    }
    kind = SSL_get_error(s->ssl, r);
    /* The answer to a change of keys, which OpenSSL has written. */
    if (tls_buffer_left(&s->wire.out) > 0 && s->sealed == 0)
        tls_wire_flush(&s->wire);
    if (kind == SSL_ERROR_WANT_READ) {
        stream_read_ahead(s);
        atomic_store_explicit(&s->drained, true, memory_order_relaxed);
        return -EAGAIN;
    }
    if (kind == SSL_ERROR_ZERO_RETURN || s->wire.ended)
        return 0;
    if (s->wire.broken)
        return -s->wire.broken;
    tls_session_fail(s, kind);
    return -EPROTO;
}

static ssize_t stream_read_some(struct tls_session *s, void *to, size_t room)
{
    ssize_t r = s->kernel_receives && !s->held ? tls_kernel_read(s, to, room) : -EIO;

    if (r != -EIO)
        return r;
    pthread_mutex_lock(&s->lock);
    if (s->carried) /* a writer that changes our key may count, too: under the lock only */
        s->wire.dataless = 0;
    s->carried = false;
    r = stream_read_record(s, to, room);
    s->held = s->kernel_receives && SSL_has_pending(s->ssl);
    pthread_mutex_unlock(&s->lock);
    return r;
}

ssize_t tls_session_read(struct tls_session *s, const struct iovec *iov, int n)
{
    ssize_t all = 0, r = 0;

    for (int i = 0; i < n; i++)
        for (size_t at = 0; at < iov[i].iov_len && all < READ_TURN; at += (size_t)r, all += r) {
            r = stream_read_some(s, (char *)iov[i].iov_base + at, iov[i].iov_len - at);
            if (r <= 0)
                return all > 0 ? all : r; /* the next read finds the end again */
            if (tls_session_is_drained(s))
                return all + r;
        }
    return all;
}

/* Finds up to a record of plain text at `skip`. Small pieces are copied into one; `to` is where it
 * begins. */
static size_t stream_gather(struct tls_session *s, const struct iovec *iov, unsigned n, size_t skip,
                            const void **to)
{
    size_t len = 0;
    unsigned i = 0;

    for (; i < n && skip >= iov[i].iov_len; i++)
        skip -= iov[i].iov_len;
    if (i < n && (iov[i].iov_len - skip >= RECORD_MAX || i + 1 == n)) {
        *to = (const char *)iov[i].iov_base + skip;
        return iov[i].iov_len - skip < RECORD_MAX ? iov[i].iov_len - skip : RECORD_MAX;
    }
    *to = s->text;
    for (; i < n && len < RECORD_MAX; i++, skip = 0) {
        size_t more = iov[i].iov_len - skip;
        if (more > RECORD_MAX - len)
            more = RECORD_MAX - len;
        memcpy(s->text + len, (const char *)iov[i].iov_base + skip, more);
        len += more;
    }
    return len;
}

/* Encrypts what follows `skip`. Returns 0 or an errno. Lock held. */
static int stream_seal(struct tls_session *s, const struct iovec *iov, unsigned n, size_t skip)
{
    const void *text;
    size_t len, done;

    while (tls_buffer_left(&s->wire.out) < OUT_MAX &&
           (len = stream_gather(s, iov, n, skip + s->sealed, &text)) > 0) {
        if (ERR_peek_error())
            ERR_clear_error();
        /* The change goes out with this record. */
        if (++s->records % TLS_RECORDS_PER_KEY == 0)
            SSL_key_update(s->ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
        if (SSL_write_ex(s->ssl, text, len, &done) != 1) {
            tls_session_fail(s, SSL_ERROR_SSL);
            return EPROTO;
        }
        s->sealed += done;
    }
    return 0;
}

ssize_t tls_session_write(struct tls_session *s, const struct iovec *iov, unsigned n)
{
    size_t left = 0;
    int e;

    pthread_mutex_lock(&s->lock);
    if (s->kernel_sends) {
        const ssize_t r = tls_kernel_write(s, iov, n);
        pthread_mutex_unlock(&s->lock);
        return r;
    }
    e = s->failed ? EPROTO : tls_wire_flush(&s->wire);
    /* Without a socket all that is encrypted has left. */
    while (!e && (s->wire.fd < 0 || tls_buffer_left(&s->wire.out) == 0)) {
        left += s->sealed;
        s->sealed = 0;
        e = stream_seal(s, iov, n, left);
        if (e || s->sealed == 0)
            break;
        e = tls_wire_flush(&s->wire);
    }
    pthread_mutex_unlock(&s->lock);
    if (left > 0)
        return (ssize_t)left;
    return e ? -e : -EAGAIN;
}

bool tls_session_is_drained(const struct tls_session *s)
{
    return atomic_load_explicit(&s->drained, memory_order_relaxed);
}

/* ---- without a socket -------------------------------------------------------------- */

tenrec_status tls_session_feed(struct tls_session *s, const void *data, size_t len,
                               tenrec_error *err)
{
    bool there;

    pthread_mutex_lock(&s->lock);
    there = tls_buffer_add(&s->wire.in, data, len);
    pthread_mutex_unlock(&s->lock);
    return there ? TENREC_OK : memory_fail(err);
}

const void *tls_session_output(struct tls_session *s, size_t *ret_len)
{
    const void *data;

    pthread_mutex_lock(&s->lock);
    data = s->wire.out.data ? s->wire.out.data + s->wire.out.at : NULL;
    *ret_len = tls_buffer_left(&s->wire.out);
    s->wire.out.at = s->wire.out.len;
    pthread_mutex_unlock(&s->lock);
    return data;
}
