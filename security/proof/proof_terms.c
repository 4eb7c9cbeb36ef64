/* SPDX-License-Identifier: Apache-2.0 */
#include "security/proof/proof_mac.h"

#include <string.h>

static tenrec_status terms_copy_party(const struct proof_party *from, struct proof_party_text *to,
                                      tenrec_error *err)
{
    const char *const name = from->name ? from->name : "";
    const char *const address = from->address ? from->address : "";
    const size_t name_len = strlen(name), address_len = strlen(address);

    if (name_len > TENREC_NAME_MAX || address_len > PROOF_ADDRESS_MAX || from->rank < -1)
        return tenrec_fail(err, TENREC_EINVAL,
                           "a party of a proof: its name, its address or its rank is out of range");
    to->rank = from->rank;
    to->incarnation = from->incarnation;
    memcpy(to->name, name, name_len + 1);
    memcpy(to->address, address, address_len + 1);
    return TENREC_OK;
}

tenrec_status proof_terms_copy(const struct proof_terms *terms, struct proof_hello *ret,
                               tenrec_error *err)
{
    const char *const purpose = terms->purpose ? terms->purpose : "";
    const size_t len = strlen(purpose);
    tenrec_status st = terms_copy_party(&terms->me, &ret->me, err);

    if (st == TENREC_OK && terms->side == PROOF_DIALLER)
        st = terms_copy_party(&terms->peer, &ret->wanted, err);
    if (st != TENREC_OK)
        return st;
    if (len == 0 || len > PROOF_PURPOSE_MAX || terms->label_len > PROOF_LABEL_MAX)
        return tenrec_fail(err, TENREC_EINVAL, "a proof: its purpose or its label is out of range");
    memcpy(ret->purpose, purpose, len + 1);
    if (terms->label_len)
        memcpy(ret->label, terms->label, terms->label_len);
    ret->label_len = terms->label_len;
    ret->has_secret = terms->secret != NULL;
    return TENREC_OK;
}
