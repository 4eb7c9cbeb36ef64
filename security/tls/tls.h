/* SPDX-License-Identifier: Apache-2.0 */
/* tls.h - the means of this process to prove itself by TLS 1.3: a key that is derived from the
 * group secret, or a certificate. OpenSSL is behind it, and in no header. */
#ifndef TENREC_TLS_TLS_H
#define TENREC_TLS_TLS_H

#include "security/secret/secret.h"

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <tenrec/plugin.h>

struct tls; /* counted; shared by threads */

/* Files in PEM form. Texts are borrowed for the call. */
struct tls_files {
    const char *ca;      /* authorities of the peers' certificates */
    const char *cert;    /* our own, with the chain up to the authority */
    const char *key;     /* of it, of mode 0600 */
    uint64_t refresh_ms; /* between two checks for changed files; TENREC_FOREVER: never */
    struct tenrec_option_list names; /* of which a peer's certificate must have one; empty: the name
                                        of the worker */
};

/* With a pre-shared key of the secret (shared), and Diffie-Hellman. errors: EOS, ENOMEM */
tenrec_status tls_open_secret(struct secret *secret, struct tls **ret, tenrec_error *err);
/* With certificates of both sides.
 * errors: ECONFIG: a file cannot be used, others may read the key; ENOMEM */
tenrec_status tls_open_files(const struct tls_files *files, struct tls **ret, tenrec_error *err);
/* Leaves all encryption to OpenSSL; before the first session. */
void tls_forbid_kernel(struct tls *t);
struct tls *tls_share(struct tls *t);
void tls_drop(struct tls *t); /* NULL is fine */

/* One connection over TLS 1.3.
 *
 * A session with a socket reads and writes it, without blocking; the socket stays the caller's. One
 * without takes received bytes (tls_session_feed) and gives those to send (tls_session_output).
 *
 * One thread may read while another writes. */

#define TLS_BINDING_BYTES 32

struct tls_session;

enum tls_side { TLS_DIALLER, TLS_LISTENER };

/* fd       a stream socket, connected before the first tls_session_shake; -1: bytes in, bytes out
 * errors   ECONFIG (changed files that cannot be used never make an error), EOS, ENOMEM */
tenrec_status tls_session_open(struct tls *t, int fd, enum tls_side side, struct tls_session **ret,
                               tenrec_error *err);
void tls_session_close(struct tls_session *s); /* wipes; NULL is fine */

/* Continues the handshake with what has been received.
 *
 * errors  EAGAIN: more must come first, or room for what is to be sent; EPERM: one side refuses the
 *         other, with the reason for people; EPROTOCOL: the peer speaks no TLS; ECONNECT: the
 *         connection has ended */
tenrec_status tls_session_shake(struct tls_session *s, tenrec_error *err);

/* Returns true if bytes wait for room in the socket: the handshake goes on when it is writable,
 * else when it is readable. */
bool tls_session_is_congested(struct tls_session *s);

/* After the handshake. Reads until `iov` is full, nothing more is buffered
 * (tls_session_is_drained), or some MiB were read. Returns the bytes, 0 at the end of the stream,
 * -EAGAIN when there is nothing now, another -errno; -EPROTO has a reason.
 */
ssize_t tls_session_read(struct tls_session *s, const struct iovec *iov, int n);
/* Returns the bytes that have left, -EAGAIN when that is none, or another -errno. The caller must
 * give the bytes that have not left again, at the front of the next write: they may be encrypted by
 * now. */
ssize_t tls_session_write(struct tls_session *s, const struct iovec *iov, unsigned n);
/* Returns true if the last read has found nothing more: the socket will tell of what comes. */
bool tls_session_is_drained(const struct tls_session *s);
/* The reason of -EPROTO, or of a refused handshake; "" if there is none. Valid until close. */
const char *tls_session_reason(const struct tls_session *s);

/* For a session without a socket. Feed copies; the output counts as sent, and is borrowed until the
 * next call. errors: ENOMEM */
tenrec_status tls_session_feed(struct tls_session *s, const void *data, size_t len,
                               tenrec_error *err);
const void *tls_session_output(struct tls_session *s, size_t *ret_len);

/* A value that both sides of this session have, and no other session: what is said with it was said
 * here. errors: EOS */
tenrec_status tls_session_binding(struct tls_session *s, uint8_t ret[TLS_BINDING_BYTES],
                                  tenrec_error *err);
/* Checks the name of the peer, "" for one without a name, against its certificate. OK without
 * certificates. errors: EPERM with the names that it has */
tenrec_status tls_session_check_name(struct tls_session *s, const char *name, tenrec_error *err);
/* "TLSv1.3 TLS_AES_128_GCM_SHA256, encrypts: library, decrypts: library"; or kernel. */
const char *tls_session_describe(const struct tls_session *s);

#endif
