/* SPDX-License-Identifier: Apache-2.0 */
/* proof_mac.h - the records of an exchange so far, and the mac of the next one; for the room only.
 */
#ifndef TENREC_PROOF_PROOF_MAC_H
#define TENREC_PROOF_PROOF_MAC_H

#include "security/proof/proof_record.h"

/* The author of a mac, and what it says with it: no mac stands for another. A listener that is not
 * the wanted one has a role of its own, which a member alone can tell from the other: a stranger
 * cannot find out by trial which worker listens. */
enum proof_role { ROLE_LISTENER, ROLE_ANOTHER_LISTENER, ROLE_DIALLER, ROLE_ACCEPTED };

struct proof_past {
    struct secret *secret;                /* borrows; not NULL where a mac is asked for */
    char purpose[PROOF_PURPOSE_MAX + 32]; /* of the key */
    uint8_t data[2 * PROOF_RECORD_MAX];   /* all records, one behind the other */
    size_t len;
    uint8_t binding[PROOF_BINDING_BYTES];
    size_t binding_len; /* 0: none */
};

/* binding: as in struct proof_terms */
void proof_past_init(struct proof_past *past, struct secret *secret, const char *purpose,
                     const uint8_t *binding);
void proof_past_add(struct proof_past *past, const uint8_t *record, size_t len);

/* The mac of a record of `len` bytes, whose end is the room for it. errors: EOS */
tenrec_status proof_mac(const struct proof_past *past, enum proof_role role, const uint8_t *record,
                        size_t len, uint8_t ret[CRYPTO_MAC_BYTES], tenrec_error *err);

/* Compares the end of a record with its mac. errors: EOS */
tenrec_status proof_mac_check(const struct proof_past *past, enum proof_role role,
                              const uint8_t *record, size_t len, bool *ret_equal,
                              tenrec_error *err);

/* The terms of a proof, checked; for the room only. */

/* Copies all but the side and the nonce. errors: EINVAL: a term fits no record */
tenrec_status proof_terms_copy(const struct proof_terms *terms, struct proof_hello *ret,
                               tenrec_error *err);

#endif
