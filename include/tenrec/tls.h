/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/tls.h - TLS 1.3 over a connected socket, for backends.
 *
 * An extension of struct tenrec_host. A backend that uses it in the modes tls and mtls for every
 * connection that leaves this host, and gives the session to the proof behind it (tenrec/proof.h),
 * sets TENREC_PLUGIN_ENCRYPTS. The core has the key of the group or the certificates of this
 * worker; the backend has the sockets, and no OpenSSL:
 *
 *     t = open;  until OK: shake, wait for the socket;  p = dial or listen with t;  read, write;
 *     close p, then t
 *
 * Nothing here blocks. Threads: any; one may read while another writes.
 */
#ifndef TENREC_TLS_H
#define TENREC_TLS_H

#include <sys/types.h>
#include <sys/uio.h>
#include <tenrec/agent.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENREC_EXTENSION_TLS 2u

struct tenrec_tls; /* opaque: the session of one connection */

/* Grows at its end: the extension has its size. */
struct tenrec_tls_service {
    struct tenrec_extension extension; /* TENREC_EXTENSION_TLS */

    /* fd      a stream socket, connected before the first `shake`; stays the caller's until close
     * dials   this side has begun the connection
     * errors  ECONFIG (not in mode tls or mtls), EOS, ENOMEM */
    tenrec_status (*open)(const struct tenrec_agent *self, int fd, bool dials,
                          struct tenrec_tls **ret, tenrec_error *err);

    /* Continues the handshake. EAGAIN: wait until the socket can be read or written; EPERM: one
     * side refuses the other, with the reason for people; EPROTOCOL: the peer speaks no TLS;
     * ECONNECT: the connection has ended. */
    tenrec_status (*shake)(struct tenrec_tls *t, tenrec_error *err);

    /* Reads until `iov` is full, nothing more is buffered (`drained`), or some MiB were read.
     * Returns the bytes, 0 at the end, -EAGAIN when there is nothing now, another -errno; -EPROTO:
     * see reason. */
    ssize_t (*read)(struct tenrec_tls *t, const struct iovec *iov, int n);

    /* Returns the bytes that have left, -EAGAIN when that is none, another -errno. What has not
     * left must be given again at the front of the next write: it may be encrypted by now. */
    ssize_t (*write)(struct tenrec_tls *t, const struct iovec *iov, unsigned n);

    /* Returns true if the last read found nothing more: the socket will tell of what comes. */
    bool (*drained)(const struct tenrec_tls *t);

    /* Version, cipher, and where each direction is encrypted: "TLSv1.3 TLS_AES_128_GCM_SHA256,
     * encrypts: kernel, decrypts: library"; and what broke the session, or "". Valid until close.
     */
    const char *(*cipher)(const struct tenrec_tls *t);
    const char *(*reason)(const struct tenrec_tls *t);

    void (*close)(struct tenrec_tls *t); /* NULL is fine */
};

/* Returns the service, or NULL if the core is older. */
static inline const struct tenrec_tls_service *tenrec_tls_service(const struct tenrec_host *h)
{
    return (const struct tenrec_tls_service
                *)(const void *)(TENREC_HAS(h, extensions)
                                     ? tenrec_extension_find(
                                           h->extensions, TENREC_EXTENSION_TLS,
                                           (uint32_t)sizeof(struct tenrec_tls_service))
                                     : NULL);
}

#ifdef __cplusplus
}
#endif

#endif
