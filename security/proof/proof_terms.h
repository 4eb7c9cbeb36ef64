/* SPDX-License-Identifier: Apache-2.0 */
/* proof_terms.h - the terms of a proof, checked; for the room only. */
#ifndef TENREC_PROOF_PROOF_TERMS_H
#define TENREC_PROOF_PROOF_TERMS_H

#include "security/proof/proof_record.h"

/* Copies all but the side and the nonce. errors: EINVAL: a term fits no record */
tenrec_status proof_terms_copy(const struct proof_terms *terms, struct proof_hello *ret,
                               tenrec_error *err);

#endif
