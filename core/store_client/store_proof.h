/* SPDX-License-Identifier: Apache-2.0 */
/* store_proof.h - a client's proof of the group secret, the first exchange of each connection. */
#ifndef TENREC_STORE_CLIENT_STORE_PROOF_H
#define TENREC_STORE_CLIENT_STORE_PROOF_H

#include "store_client/store_conn.h"

struct secret;

/* Proves the secret to the server, and checks the server's proof.
 *
 * errors: EPERM (a side is refused, or the server answers by something else than a proof),
 *         EPEER_LOST (closed, as by a server that knows no proof; "no proof" in the text),
 *         ETIMEDOUT, ENOMEM, EOS */
tenrec_status store_proof_exchange(struct store_conn *c, struct secret *secret,
                                   uint64_t deadline_ns, tenrec_error *err);

/* Checks the first 4 bytes that answer a client without a secret. errors: EPERM (the server asks
 * for one) */
tenrec_status store_proof_check_answer(const uint8_t answer[4], tenrec_error *err);

#endif
