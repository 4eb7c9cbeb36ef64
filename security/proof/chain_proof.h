/* SPDX-License-Identifier: Apache-2.0 */
/* chain_proof.h - the guard of chains: the proof service of their agents (tenrec/proof.h), and
 * behind it the one for TLS. A guard lies in a struct security. */
#ifndef TENREC_PROOF_CHAIN_PROOF_H
#define TENREC_PROOF_CHAIN_PROOF_H

#include "core/backend/chain.h"

#include <tenrec/proof.h>

extern const struct chain_guard chain_proof_guard;

#endif
