/* SPDX-License-Identifier: Apache-2.0 */
/* chain_proof.h - the guard of chains: the proof service of their agents (tenrec/proof.h), and
 * behind it the one for TLS. A guard lies in a struct security. */
#ifndef TENREC_PROOF_CHAIN_PROOF_H
#define TENREC_PROOF_CHAIN_PROOF_H

#include <tenrec/proof.h>
#include <tenrec/tls.h>

#include "core/backend/backend.h"
#include "security/proof/security.h"

extern const struct chain_guard chain_proof_guard;

/* The TLS service of a chain (tenrec/tls.h). */

struct tls_session;

/* What backends call struct tenrec_tls. */
static inline struct tls_session *chain_tls_session(struct tenrec_tls *t)
{
    return (struct tls_session *)(void *)t;
}

extern const struct tenrec_tls_service chain_tls_service;

/* Whether the peer of a connected socket may do without a proof. */

/* Asks the kernel whose process the peer is. Does not wait. errors: EPERM */
tenrec_status plain_socket_check(enum security_plain plain, int fd, tenrec_error *err);

#endif
