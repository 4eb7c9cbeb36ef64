/* SPDX-License-Identifier: Apache-2.0 */
/* tls_session_inside.h - the inside of a session; for the room only. */
#ifndef TENREC_TLS_TLS_SESSION_INSIDE_H
#define TENREC_TLS_TLS_SESSION_INSIDE_H

#include "security/tls/tls.h"
#include "security/tls/tls_bio.h"
#include "security/tls/tls_context.h"

#define RECORD_MAX ((size_t)16 << 10) /* bytes of plain text in one record */
/* A full record on the wire: with its head, the type within, and the tag. */
#define RECORD_ON_WIRE (RECORD_MAX + SSL3_RT_HEADER_LENGTH + 1 + EVP_GCM_TLS_TAG_LEN)
/* Bytes of the buffer into which a session reads from its socket: room for full records and none
 * beside them, behind the bytes by which OpenSSL aligns the first. The part of a further record
 * would be moved, and its rest be read alone. Not before the handshake: a stranger's session takes
 * no more memory than it must. */
#define READ_AHEAD (4 * RECORD_ON_WIRE + SSL3_ALIGN_PAYLOAD - SSL3_RT_HEADER_LENGTH)

/* One key of AES-GCM may encrypt 2^24.5 records (RFC 8446, 5.5); OpenSSL does not count them. */
#ifndef TLS_RECORDS_PER_KEY
#define TLS_RECORDS_PER_KEY (UINT64_C(1) << 23)
#endif

/* An SSL object bears one thread at a time: a reader holds the lock for a record, a writer while
 * the socket takes what it has. */
struct tls_session {
    struct tls *tls; /* shares */
    enum tls_side side;
    pthread_mutex_t lock; /* guards all below */
    SSL *ssl;
    struct tls_wire wire;
    uint64_t records;    /* that were encrypted */
    size_t sealed;       /* bytes of the next write that are encrypted already */
    unsigned char *text; /* RECORD_MAX: small pieces that one record takes; after the handshake */
    bool reads_ahead;    /* with room for some records */
    bool failed;
    /* Set at the end of the handshake. */
    bool kernel_sends, kernel_receives;
    bool held; /* the reader's: OpenSSL has read data from the kernel, after a record for itself */
    bool carried;        /* the reader's: data came by the kernel since OpenSSL last read */
    atomic_bool drained; /* written under the lock, or by the reader where the kernel receives */
    char reason[200];
    char cipher[96];
};

/* Lets OpenSSL give the keys to the kernel, where that may be. Before the handshake, once the
 * socket is connected: the kernel refuses one that is not. Lock held. */
void tls_kernel_offer(struct tls_session *s);
/* Finds what became of it, after the handshake. Lock held. */
void tls_kernel_begin(struct tls_session *s);
/* Reads data where the kernel receives; sets `drained`. Returns what tls_session_read does, or -EIO
 * at a record for OpenSSL, which must read it. */
ssize_t tls_kernel_read(struct tls_session *s, void *to, size_t room);
/* tls_session_write where the kernel sends. Lock held. */
ssize_t tls_kernel_write(struct tls_session *s, const struct iovec *iov, unsigned n);

/* Keeps the reason of OpenSSL's last failure, of which `kind` is what SSL_get_error says. Returns
 * EPERM where one side refuses the other, ECONNECT at the end of the connection, else EPROTOCOL.
 * Lock held. */
tenrec_status tls_session_fail(struct tls_session *s, int kind);

#endif
