/* SPDX-License-Identifier: Apache-2.0 */
/* chain_tls.h - the TLS service of a chain (tenrec/tls.h). */
#ifndef TENREC_PROOF_CHAIN_TLS_H
#define TENREC_PROOF_CHAIN_TLS_H

#include <tenrec/tls.h>

struct tls_session;

/* What backends call struct tenrec_tls. */
static inline struct tls_session *chain_tls_session(struct tenrec_tls *t)
{
    return (struct tls_session *)(void *)t;
}

extern const struct tenrec_tls_service chain_tls_service;

#endif
