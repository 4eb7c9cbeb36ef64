/* SPDX-License-Identifier: Apache-2.0 */
/* store_gate.h - the clients that may speak to a store: the bytes of a connection before any
 * session reads them. Without the socket: received bytes in, the server's part of the proof, or of
 * the TLS handshake, out.
 *
 * A connection that begins a proof in mode secret, or TLS in the modes tls and mtls, must complete
 * it; one that begins the other's is refused. Any other is a plain client, such as torch's:
 * `store_plain` decides. */
#ifndef TENREC_STORE_STORE_GATE_H
#define TENREC_STORE_STORE_GATE_H

#include "security/proof/security.h"

#include <stdbool.h>

/* The time from the connection to its admission, at most. */
#define STORE_GATE_MS 10000

struct store_gate;
struct tls_session;

/* The operations of a gate's connection. */
struct store_gate_ops {
    void (*write)(void *arg, const void *data, size_t len); /* copies */
    /* errors: EPERM (a plain client is not let in), with the reason */
    tenrec_status (*check_plain)(void *arg, enum security_plain plain, tenrec_error *err);
};

/* security: shared (counted); its mode is not none. Returns NULL without memory. */
struct store_gate *store_gate_new(struct security *security, const struct store_gate_ops *ops,
                                  void *arg);
void store_gate_drop(struct store_gate *g); /* NULL is fine */

/* Takes received bytes until the gate is open; the session's begin behind *ret_used of them. Over
 * TLS all are taken, for the TLS session reads them.
 *
 * errors   the connection must be closed: EPERM (its client is refused, or refuses us), EPROTOCOL,
 *          EOS, ENOMEM */
tenrec_status store_gate_take(struct store_gate *g, const void *data, size_t len, size_t *ret_used,
                              tenrec_error *err);
bool store_gate_is_open(const struct store_gate *g);
/* Of an open gate: the TLS session that all further bytes go through (owned by the caller), NULL
 * for a client without. */
struct tls_session *store_gate_take_tls(struct store_gate *g);
/* Returns true if the gate should be open by now. */
bool store_gate_is_late(const struct store_gate *g, uint64_t now_ns);

#endif
