/* SPDX-License-Identifier: Apache-2.0 */
/* tls.h - TLS of a connection to a Redis server, without its socket: bytes of the wire on one side,
 * bytes of the protocol on the other. */
#ifndef REDIS_TLS_H
#define REDIS_TLS_H

#include <stddef.h>
#include <tenrec/error.h>

/* The files of a store's connections; "": none. Borrowed during the call. */
struct tls_files {
    const char *ca; /* authorities that may sign the server's certificate; "": the system's */
    const char *cert, *key; /* ours, if the server asks for one */
};

struct tls_context; /* shared by the connections of a store, and by threads */

/* errors: ECONFIG (names the file), ENOMEM */
tenrec_status tls_context_open(const struct tls_files *files, struct tls_context **ret,
                               tenrec_error *err);
void tls_context_drop(struct tls_context *c); /* NULL is fine */

struct tls; /* one connection; one thread at a time */

/* host: the server's name or address, which its certificate must have. errors: ENOMEM */
tenrec_status tls_open(struct tls_context *c, const char *host, struct tls **ret,
                       tenrec_error *err);
void tls_drop(struct tls *t); /* NULL is fine */

enum tls_step {
    TLS_DONE,
    TLS_MORE,  /* bytes of the wire are needed; send the output first */
    TLS_ENDED, /* the server has closed the connection */
    TLS_FAILED,
};

/* Continues the handshake. errors: ECONFIG (a certificate is refused), EPROTOCOL */
enum tls_step tls_shake(struct tls *t, tenrec_error *err);

/* The two sides. tls_read reads at least one byte, or says why not. errors: ENOMEM, those of
 * tls_shake */
tenrec_status tls_take(struct tls *t, const void *wire, size_t len, tenrec_error *err);
enum tls_step tls_read(struct tls *t, void *ret, size_t room, size_t *ret_len, tenrec_error *err);
tenrec_status tls_write(struct tls *t, const void *data, size_t len, tenrec_error *err);

/* The bytes to send now; they count as sent with tls_sent. Borrowed until the next call. */
const char *tls_output(struct tls *t, size_t *ret_len);
void tls_sent(struct tls *t);

#endif
