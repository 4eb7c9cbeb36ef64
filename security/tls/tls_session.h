/* SPDX-License-Identifier: Apache-2.0 */
/* tls_session.h - one connection over TLS 1.3.
 *
 * A session with a socket reads and writes it, without blocking; the socket stays the caller's. One
 * without takes received bytes (tls_session_feed) and gives those to send (tls_session_output).
 *
 * One thread may read while another writes. */
#ifndef TENREC_TLS_TLS_SESSION_H
#define TENREC_TLS_TLS_SESSION_H

#include "security/tls/tls.h"

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

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
