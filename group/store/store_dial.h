/* SPDX-License-Identifier: Apache-2.0 */
/* store_dial.h - connects a client to a TCP store: its addresses and its request numbers. */
#ifndef TENREC_STORE_STORE_DIAL_H
#define TENREC_STORE_STORE_DIAL_H

#include "group/store/store_conn.h"

struct security;

struct store_dial {
    const struct security *security; /* borrowed; NULL or in mode none: a plain client */
    enum store_dialect dialect;
    struct address address[RESOLVE_MAX];
    size_t n_addresses;
};

/* Fills `d` except its security, and retries until `deadline_ns`. ret: the first connection.
 * errors: ECONNECT, EPEER_LOST, ETIMEDOUT, EPROTOCOL (no store), EPERM (a side is refused, or their
 *         modes differ), and those of resolve_host */
tenrec_status store_dial_open(struct store_dial *d, const char *host, uint16_t port,
                              uint64_t deadline_ns, struct store_conn **ret, tenrec_error *err);

/* Opens another connection, which store_dial_greet makes ready for requests. errors: EPEER_LOST,
 * ETIMEDOUT */
tenrec_status store_dial_again(const struct store_dial *d, uint64_t deadline_ns,
                               struct store_conn **ret, tenrec_error *err);
/* Proves itself as the mode demands, and names the dialect. errors: EPEER_LOST, ETIMEDOUT, EPERM */
tenrec_status store_dial_greet(const struct store_dial *d, struct store_conn *c,
                               uint64_t deadline_ns, tenrec_error *err);

/* A client's TLS handshake, the first exchange of each connection in the modes tls
 * and mtls. */

struct security;

/* Shakes hands with the server and checks what it proves: all further bytes of `c` go through the
 * TLS session. There is no way back to plain bytes.
 *
 * errors: EPERM (a side is refused, or the server answers by something else than TLS), EPEER_LOST
 *         (closed, as by a server that knows no TLS; "no TLS" in the text), ETIMEDOUT, ENOMEM, EOS
 */
tenrec_status store_tls_shake(struct store_conn *c, const struct security *security,
                              uint64_t deadline_ns, tenrec_error *err);

/* A client's proof of the group secret, the first exchange of each connection. */

struct secret;
struct security;

/* Proves the secret to the server, and checks the server's proof.
 *
 * errors: EPERM (a side is refused, or the server answers by something else than a proof),
 *         EPEER_LOST (closed, as by a server that knows no proof; "no proof" in the text),
 *         ETIMEDOUT, ENOMEM, EOS */
tenrec_status store_proof_exchange(struct store_conn *c, struct secret *secret,
                                   uint64_t deadline_ns, tenrec_error *err);

/* Checks whether the server answers a client that gives no proof by the demand of another mode.
 *
 * begun     its first bytes, if they have been read already; at most PROOF_DEMAND_LEN
 * security  the client's; NULL: none
 * errors    EPERM (with both modes), ETIMEDOUT, EPEER_LOST; OK: it answers otherwise */
tenrec_status store_proof_check_demand(struct store_conn *c, const void *begun, size_t len,
                                       const struct security *security, uint64_t deadline_ns,
                                       tenrec_error *err);

#endif
