/* SPDX-License-Identifier: Apache-2.0 */
/* crypto.h - the primitives of the secret and its proof, by OpenSSL: no other file of the core
 * calls it.
 *
 * Any thread may call them, also of a child after fork. */
#ifndef TENREC_SECRET_CRYPTO_H
#define TENREC_SECRET_CRYPTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenrec/error.h>

#define CRYPTO_MAC_BYTES 32 /* of HMAC-SHA256 */

/* Some bytes of a longer message. */
struct crypto_part {
    const void *data; /* borrows */
    size_t len;
};

/* HMAC-SHA256 (RFC 2104) by `key` over `n` parts, one behind the other. errors: EOS */
tenrec_status crypto_mac(const void *key, size_t key_len, const struct crypto_part *part, size_t n,
                         uint8_t ret[CRYPTO_MAC_BYTES], tenrec_error *err);

/* HKDF-SHA256 (RFC 5869), extract and expand. An empty salt counts as 32 zeros.
 * errors: EOS */
tenrec_status crypto_derive(const void *secret, size_t secret_len, struct crypto_part salt,
                            struct crypto_part info, void *ret, size_t len, tenrec_error *err);

/* Random bytes that a stranger may see, such as nonces. errors: EOS */
tenrec_status crypto_draw_public(void *ret, size_t len, tenrec_error *err);
/* The same for secrets: of another generator, whose output no other process sees. */
tenrec_status crypto_draw_secret(void *ret, size_t len, tenrec_error *err);

/* Compares in a time that depends on `len` alone. */
bool crypto_equal(const void *a, const void *b, size_t len);

/* Zeroes, also where the compiler sees no later read. */
void crypto_wipe(void *data, size_t len);

#endif
