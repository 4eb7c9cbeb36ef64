/* SPDX-License-Identifier: Apache-2.0 */
/* store_proof.h - a client's proof of the group secret, the first exchange of each connection. */
#ifndef TENREC_STORE_STORE_PROOF_H
#define TENREC_STORE_STORE_PROOF_H

#include "group/store/store_conn.h"

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
