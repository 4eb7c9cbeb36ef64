/* SPDX-License-Identifier: Apache-2.0 */
#include "security/proof/proof_mac.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Of one length: else the time of a mac could tell a stranger which worker listens. */
#define ROLE_RIGHT_TEXT "tenrec proof: right listener"
#define ROLE_WRONG_TEXT "tenrec proof: wrong listener"
_Static_assert(sizeof ROLE_RIGHT_TEXT == sizeof ROLE_WRONG_TEXT, "equal work");

static const char *const proof_mac_roles[] = {
    [ROLE_LISTENER] = ROLE_RIGHT_TEXT,
    [ROLE_ANOTHER_LISTENER] = ROLE_WRONG_TEXT,
    [ROLE_DIALLER] = "tenrec proof: dialler",
    [ROLE_ACCEPTED] = "tenrec proof: accepted",
};

void proof_past_init(struct proof_past *past, struct secret *secret, const char *purpose,
                     const uint8_t *binding)
{
    past->secret = secret;
    past->binding_len = binding ? sizeof past->binding : 0;
    memcpy(past->binding, binding ? binding : past->binding, past->binding_len);
    snprintf(past->purpose, sizeof past->purpose, "tenrec proof %d %s", PROOF_VERSION, purpose);
    past->len = 0;
}

void proof_past_add(struct proof_past *past, const uint8_t *record, size_t len)
{
    assert(past->len + len <= sizeof past->data);
    memcpy(past->data + past->len, record, len);
    past->len += len;
}

/* The key exists only here. */
tenrec_status proof_mac(const struct proof_past *past, enum proof_role role, const uint8_t *record,
                        size_t len, uint8_t ret[CRYPTO_MAC_BYTES], tenrec_error *err)
{
    const char *const name = proof_mac_roles[role];
    const struct crypto_part part[] = {
        { name, strlen(name) + 1 },
        { past->binding, past->binding_len },
        { past->data, past->len },
        { record, len - CRYPTO_MAC_BYTES },
    };
    uint8_t key[CRYPTO_MAC_BYTES];
    tenrec_status st = secret_derive(past->secret, past->purpose, key, sizeof key, err);

    if (st == TENREC_OK)
        st = crypto_mac(key, sizeof key, part, sizeof part / sizeof part[0], ret, err);
    crypto_wipe(key, sizeof key);
    return st;
}

tenrec_status proof_mac_check(const struct proof_past *past, enum proof_role role,
                              const uint8_t *record, size_t len, bool *ret_equal, tenrec_error *err)
{
    uint8_t mac[CRYPTO_MAC_BYTES];
    tenrec_status st = proof_mac(past, role, record, len, mac, err);

    *ret_equal = st == TENREC_OK && crypto_equal(mac, record + len - sizeof mac, sizeof mac);
    crypto_wipe(mac, sizeof mac); /* of a wrong record: the right one */
    return st;
}
