/* SPDX-License-Identifier: Apache-2.0 */
#include "security/tls/tls_bio.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* OpenSSL's own: gives the kernel a key, for sending if the number is not 0. */
#define BIO_CTRL_SET_KTLS 72

#define BUFFER_FIRST ((size_t)4 << 10)

static BIO_METHOD *bio_method; /* NULL after a failure */
static pthread_once_t bio_once = PTHREAD_ONCE_INIT;

bool tls_buffer_add(struct tls_buffer *b, const void *data, size_t len)
{
    size_t cap = b->cap ? b->cap : BUFFER_FIRST;
    uint8_t *bigger;

    if (b->at == b->len) {
        b->at = b->len = 0;
    } else if (b->len + len > b->cap && b->at > 0) {
        memmove(b->data, b->data + b->at, b->len - b->at);
        b->len -= b->at;
        b->at = 0;
    }
    while (cap < b->len + len)
        cap *= 2;
    if (cap != b->cap) {
        bigger = realloc(b->data, cap);
        if (!bigger)
            return false;
        b->data = bigger;
        b->cap = cap;
    }
    memcpy(b->data + b->len, data, len);
    b->len += len;
    return true;
}

/* The end of an operation that OpenSSL's own BIO has done. */
static int bio_of_kernel(BIO *bio, struct tls_wire *w, int r)
{
    if (r == 1)
        return 1;
    BIO_set_flags(bio, BIO_get_retry_flags(w->kernel));
    if (BIO_should_retry(w->kernel))
        return 0;
    w->ended = BIO_eof(w->kernel);
    if (!w->ended && !w->broken)
        w->broken = errno ? errno : EIO;
    return 0;
}

static int bio_write(BIO *bio, const char *data, size_t len, size_t *ret_len)
{
    struct tls_wire *w = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    if (tls_wire_kernel_sends(w))
        return w->broken ? 0 : bio_of_kernel(bio, w, BIO_write_ex(w->kernel, data, len, ret_len));
    if (!tls_buffer_add(&w->out, data, len))
        return 0;
    *ret_len = len;
    return 1;
}

static int bio_read_memory(BIO *bio, struct tls_wire *w, char *to, size_t room, size_t *ret_len)
{
    const size_t left = tls_buffer_left(&w->in);

    if (left == 0) {
        BIO_set_retry_read(bio);
        return 0;
    }
    *ret_len = left < room ? left : room;
    memcpy(to, w->in.data + w->in.at, *ret_len);
    w->in.at += *ret_len;
    return 1;
}

static int bio_read_socket(BIO *bio, struct tls_wire *w, char *to, size_t room, size_t *ret_len)
{
    ssize_t n;

    do
        n = recv(w->fd, to, room, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    w->emptied = n < (ssize_t)room;
    if (n > 0) {
        *ret_len = (size_t)n;
        return 1;
    }
    if (n == 0)
        w->ended = true;
    else if (errno == EAGAIN)
        BIO_set_retry_read(bio);
    else
        w->broken = errno;
    return 0;
}

static int bio_read(BIO *bio, char *to, size_t room, size_t *ret_len)
{
    struct tls_wire *w = BIO_get_data(bio);
    int r;

    BIO_clear_retry_flags(bio);
    if (w->dataless > TLS_DATALESS_MAX)
        return 0;
    if (w->fd < 0) {
        r = bio_read_memory(bio, w, to, room, ret_len);
    } else if (!tls_wire_kernel_receives(w)) {
        r = bio_read_socket(bio, w, to, room, ret_len);
    } else {
        w->emptied = false; /* the kernel does not tell */
        r = w->broken ? 0 : bio_of_kernel(bio, w, BIO_read_ex(w->kernel, to, room, ret_len));
    }
    if (r == 1)
        w->dataless += *ret_len;
    return r;
}

static long bio_set_kernel_key(struct tls_wire *w, long sends, void *key)
{
    const bool had = sends ? tls_wire_kernel_sends(w) : tls_wire_kernel_receives(w);
    /* What waits is encrypted already. */
    const bool may = (had || !w->settled) && (!sends || tls_buffer_left(&w->out) == 0);
    const long r = may ? BIO_ctrl(w->kernel, BIO_CTRL_SET_KTLS, sends, key) : 0;

    /* OpenSSL would encrypt by itself then, above a kernel that does so with the old key. */
    if (r <= 0 && had)
        w->broken = EKEYREJECTED;
    return r;
}

static long bio_control(BIO *bio, int command, long number, void *arg)
{
    struct tls_wire *w = BIO_get_data(bio);

    switch (command) {
    case BIO_CTRL_FLUSH: /* the session does that, but for the kernel, which needs an empty buffer
                          */
        if (w->kernel)
            tls_wire_flush(w);
        return 1;
    case BIO_CTRL_PUSH:
    case BIO_CTRL_POP:
        return 1;
    case BIO_CTRL_EOF:
        return w->ended;
    case BIO_CTRL_SET_KTLS:
        return w->kernel ? bio_set_kernel_key(w, number, arg) : 0;
    default:
        return w->kernel ? BIO_ctrl(w->kernel, command, number, arg) : 0;
    }
}

static void bio_make_method(void)
{
    BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "tenrec");

    if (m && BIO_meth_set_write_ex(m, bio_write) && BIO_meth_set_read_ex(m, bio_read) &&
        BIO_meth_set_ctrl(m, bio_control))
        bio_method = m;
    else
        BIO_meth_free(m);
}

BIO *tls_bio_new(struct tls_wire *w)
{
    BIO *bio;

    pthread_once(&bio_once, bio_make_method);
    bio = bio_method ? BIO_new(bio_method) : NULL;
    if (bio) {
        BIO_set_data(bio, w);
        BIO_set_init(bio, 1);
    }
    return bio;
}

void tls_wire_finish(struct tls_wire *w)
{
    BIO_free(w->kernel);
    free(w->out.data);
    free(w->in.data);
}

int tls_wire_flush(struct tls_wire *w)
{
    ssize_t n;

    while (w->fd >= 0 && tls_buffer_left(&w->out) > 0) {
        if (w->broken)
            return w->broken;
        n = send(w->fd, w->out.data + w->out.at, tls_buffer_left(&w->out),
                 MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0)
            w->out.at += (size_t)n;
        else if (errno == EAGAIN)
            return 0;
        else if (errno != EINTR)
            w->broken = errno;
    }
    return 0;
}
