/* SPDX-License-Identifier: Apache-2.0 */
/* tls_bio.h - the bytes below a session: OpenSSL's BIO over a socket, or over memory; for the room
 * only.
 *
 * What OpenSSL writes is kept until tls_wire_flush: so a write of OpenSSL never ends in the middle,
 * and many records leave by one system call. */
#ifndef TENREC_TLS_TLS_BIO_H
#define TENREC_TLS_TLS_BIO_H

#include <openssl/bio.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* OpenSSL reads on while records have no data in them, such as changes of keys: without this limit
 * the calling thread would be the peer's for as long as it sends. An honest peer stays below: data
 * is in a record, and what is read ahead of it. */
#define TLS_DATALESS_MAX ((size_t)96 << 10)

struct tls_buffer {
    uint8_t *data; /* owns; data[at..len-1] are there */
    size_t at, len, cap;
};

struct tls_wire {
    int fd;          /* borrows; -1: bytes in, bytes out */
    int broken;      /* errno of the socket; 0: none so far */
    bool ended;      /* the peer sends no more */
    bool emptied;    /* the last read found less in the socket than there was room for */
    size_t dataless; /* bytes received since the last that had data in them */
    BIO *kernel;     /* owns; OpenSSL's for the socket, by which the kernel gets keys; or NULL */
    bool settled;    /* the kernel takes no further direction */
    struct tls_buffer out; /* to be sent */
    struct tls_buffer in;  /* without a socket: received */
};

/* Returns NULL without memory. The wire outlives it. */
BIO *tls_bio_new(struct tls_wire *w);
void tls_wire_finish(struct tls_wire *w);

bool tls_buffer_add(struct tls_buffer *b, const void *data, size_t len);
static inline size_t tls_buffer_left(const struct tls_buffer *b)
{
    return b->len - b->at;
}

/* Returns true if the kernel has a key, and encrypts or decrypts the records of that direction. */
static inline bool tls_wire_kernel_sends(const struct tls_wire *w)
{
    return w->kernel && BIO_get_ktls_send(w->kernel);
}
static inline bool tls_wire_kernel_receives(const struct tls_wire *w)
{
    return w->kernel && BIO_get_ktls_recv(w->kernel);
}

/* Sends what waits, as far as the socket takes it. Returns 0 or an errno but for EAGAIN. */
int tls_wire_flush(struct tls_wire *w);

#endif
