/* SPDX-License-Identifier: Apache-2.0 */
#include "security/secret/crypto.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <string.h>

#define BLOCK_BYTES 64 /* of SHA-256 */

/* Fetched once, and kept: a fetch takes a lock of the library, which a child of a fork may find
 * locked for ever. The HMAC is built upon the digest, as OpenSSL's own takes four times as long to
 * set up. NULL after a failure. */
static EVP_MD *crypto_sha256;
static pthread_once_t crypto_once = PTHREAD_ONCE_INIT;

/* Takes OpenSSL's reason out of this thread's queue. */
static tenrec_status crypto_fail(const char *what, tenrec_error *err)
{
    char reason[120] = "no reason given";
    const unsigned long code = ERR_get_error();

    if (code)
        ERR_error_string_n(code, reason, sizeof reason);
    ERR_clear_error();
    return tenrec_fail(err, TENREC_EOS, "libcrypto cannot %s: %s", what, reason);
}

static void crypto_fetch(void)
{
    crypto_sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
}

/* SHA-256 of a block and the parts behind it. */
static bool crypto_hash(EVP_MD_CTX *c, const uint8_t *block, size_t block_len,
                        const struct crypto_part *part, size_t n, uint8_t ret[CRYPTO_MAC_BYTES])
{
    bool ok = EVP_DigestInit_ex2(c, crypto_sha256, NULL) == 1 &&
              EVP_DigestUpdate(c, block, block_len) == 1;

    for (size_t i = 0; ok && i < n; i++)
        ok = EVP_DigestUpdate(c, part[i].data, part[i].len) == 1;
    return ok && EVP_DigestFinal_ex(c, ret, NULL) == 1;
}

static void crypto_pad(uint8_t block[BLOCK_BYTES], const uint8_t key[BLOCK_BYTES], uint8_t with)
{
    for (size_t i = 0; i < BLOCK_BYTES; i++)
        block[i] = key[i] ^ with;
}

static bool crypto_hmac(const void *key, size_t key_len, const struct crypto_part *part, size_t n,
                        uint8_t ret[CRYPTO_MAC_BYTES])
{
    uint8_t padded[BLOCK_BYTES] = { 0 }, block[BLOCK_BYTES], inner[CRYPTO_MAC_BYTES];
    const struct crypto_part hashed = { inner, sizeof inner };
    EVP_MD_CTX *c;
    bool ok;

    pthread_once(&crypto_once, crypto_fetch);
    c = crypto_sha256 ? EVP_MD_CTX_new() : NULL;
    ok = c != NULL;
    if (ok && key_len > sizeof padded)
        ok = crypto_hash(c, key, key_len, NULL, 0, padded);
    else if (key_len)
        memcpy(padded, key, key_len < sizeof padded ? key_len : sizeof padded);
    crypto_pad(block, padded, 0x36);
    ok = ok && crypto_hash(c, block, sizeof block, part, n, inner);
    crypto_pad(block, padded, 0x5c);
    ok = ok && crypto_hash(c, block, sizeof block, &hashed, 1, ret);
    EVP_MD_CTX_free(c);
    crypto_wipe(padded, sizeof padded);
    crypto_wipe(block, sizeof block);
    crypto_wipe(inner, sizeof inner);
    return ok;
}

tenrec_status crypto_mac(const void *key, size_t key_len, const struct crypto_part *part, size_t n,
                         uint8_t ret[CRYPTO_MAC_BYTES], tenrec_error *err)
{
    return crypto_hmac(key, key_len, part, n, ret) ? TENREC_OK
                                                   : crypto_fail("compute an HMAC-SHA256", err);
}

tenrec_status crypto_derive(const void *secret, size_t secret_len, struct crypto_part salt,
                            struct crypto_part info, void *ret, size_t len, tenrec_error *err)
{
    const struct crypto_part whole = { secret, secret_len };
    uint8_t key[CRYPTO_MAC_BYTES], block[CRYPTO_MAC_BYTES], number = 0, *to = ret;
    bool ok =
        len <= (size_t)UINT8_MAX * sizeof block && crypto_hmac(salt.data, salt.len, &whole, 1, key);

    for (size_t n; ok && len > 0; to += n, len -= n) {
        const struct crypto_part part[] = { { block, number > 0 ? sizeof block : 0 },
                                            info,
                                            { &number, 1 } };

        number++;
        ok = crypto_hmac(key, sizeof key, part, 3, block);
        n = len < sizeof block ? len : sizeof block;
        memcpy(to, block, n);
    }
    crypto_wipe(key, sizeof key);
    crypto_wipe(block, sizeof block);
    return ok ? TENREC_OK : crypto_fail("derive a key", err);
}

tenrec_status crypto_draw_public(void *ret, size_t len, tenrec_error *err)
{
    return RAND_bytes_ex(NULL, ret, len, 0) == 1 ? TENREC_OK
                                                 : crypto_fail("draw random bytes", err);
}

tenrec_status crypto_draw_secret(void *ret, size_t len, tenrec_error *err)
{
    return RAND_priv_bytes_ex(NULL, ret, len, 0) == 1 ? TENREC_OK
                                                      : crypto_fail("draw random bytes", err);
}

bool crypto_equal(const void *a, const void *b, size_t len)
{
    return CRYPTO_memcmp(a, b, len) == 0;
}

void crypto_wipe(void *data, size_t len)
{
    OPENSSL_cleanse(data, len);
}
