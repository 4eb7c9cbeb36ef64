/* SPDX-License-Identifier: Apache-2.0 */
/* proof_record.h - the bytes of a proof: its records, packed and unpacked; for the room only.
 *
 * A record is a head (magic, version, kind, length of the body) and a body; docs/wire.md has the
 * fields of each kind. Where it has a mac, this is its end. */
#ifndef TENREC_PROOF_PROOF_RECORD_H
#define TENREC_PROOF_PROOF_RECORD_H

#include "security/proof/proof.h"
#include "security/secret/crypto.h"

#include <tenrec/proof.h>
#include <tenrec/types.h>

#define PROOF_MAGIC TENREC_PROOF_MAGIC
#define PROOF_MAGIC_LEN TENREC_PROOF_MAGIC_LEN
#define PROOF_VERSION 1
#define PROOF_HEAD_LEN 8
#define PROOF_NONCE_LEN 32
#define PROOF_PURPOSE_MAX 63 /* a plugin's name */

enum proof_kind {
    PROOF_HELLO = 1,
    PROOF_CHALLENGE = 2,
    PROOF_ANSWER = 3,
    PROOF_ACCEPTED = 4,
    PROOF_REFUSED = 5,
};

/* The values travel. */
enum proof_reason {
    PROOF_NEEDS_SECRET = 1, /* the sender has a secret, the receiver gave none */
    PROOF_HAS_NO_SECRET = 2,
    PROOF_OTHER_SECRET = 3,
    PROOF_OTHER_PURPOSE = 4,
    PROOF_OTHER_PARTY = 5,
    PROOF_MALFORMED = 6,
    PROOF_OTHER_NAME = 7, /* the sender's certificate is not for its name */
    PROOF_NEEDS_TLS = 8,  /* the sender is in mode tls */
    PROOF_NEEDS_MTLS = 9, /* the sender is in mode mtls */
};

/* A party with memory of its own. */
struct proof_party_text {
    int32_t rank;
    uint64_t incarnation;
    char name[TENREC_NAME_MAX + 1];
    char address[PROOF_ADDRESS_MAX + 1];
};

struct proof_hello {
    bool has_secret;
    uint8_t nonce[PROOF_NONCE_LEN];
    char purpose[PROOF_PURPOSE_MAX + 1];
    struct proof_party_text me, wanted;
    uint8_t label[PROOF_LABEL_MAX];
    size_t label_len;
};

/* Any record, unpacked but for its mac. */
struct proof_record {
    enum proof_kind kind;
    union {
        struct proof_hello hello;
        uint8_t nonce[PROOF_NONCE_LEN]; /* of CHALLENGE */
        struct proof_party_text party;  /* of ACCEPTED */
        enum proof_reason reason;       /* of REFUSED; an unknown number stays as it is */
    };
};

/* Returns the length of the mac at the end of such a record. */
static inline size_t proof_record_mac_len(enum proof_kind kind)
{
    return kind == PROOF_HELLO || kind == PROOF_REFUSED ? 0 : CRYPTO_MAC_BYTES;
}

/* Checks the first `n` bytes of a record, also while there are few of them.
 *
 * ret_len  bytes of the whole record; 0 while the head is not complete
 * errors   EPROTOCOL: no record of a proof, or one that is too long */
tenrec_status proof_record_peek(const uint8_t *data, size_t n, size_t *ret_len, tenrec_error *err);

/* Unpacks a whole record. errors: EPROTOCOL */
tenrec_status proof_record_unpack(const uint8_t *data, size_t len, struct proof_record *ret,
                                  tenrec_error *err);

/* Packs all but the mac, for which room is left: the caller writes it to the end. Returns the
 * length with it. */
size_t proof_record_pack(const struct proof_record *r, uint8_t ret[PROOF_RECORD_MAX]);

/* The text of a received reason, for people. */
const char *proof_reason_text(enum proof_reason reason);

#endif
