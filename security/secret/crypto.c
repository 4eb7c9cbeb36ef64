/* SPDX-License-Identifier: Apache-2.0 */
#include "security/secret/crypto.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <pthread.h>

/* Fetched once, and kept: a fetch takes a lock of the library, which a child of a fork may find
 * locked for ever. NULL after a failure. */
static struct {
    EVP_MAC_CTX *mac; /* HMAC-SHA256 by a key that no mac uses; each mac begins with a copy */
    EVP_KDF *kdf;
} crypto_fetched;
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

/* OpenSSL's parameters are not const, although it does not write to those that it is given. */
static void *crypto_unconst(const void *data)
{
    return (void *)(uintptr_t)data;
}

static OSSL_PARAM crypto_digest(void)
{
    return OSSL_PARAM_construct_utf8_string(OSSL_ALG_PARAM_DIGEST, crypto_unconst("SHA256"), 0);
}

/* Returns NULL after a failure. A copy of it has its digest, which an init would fetch. It has a
 * key as well, so that no release of OpenSSL takes it for a context that cannot be copied yet. */
static EVP_MAC_CTX *crypto_mac_template(void)
{
    static const uint8_t no_key[CRYPTO_MAC_BYTES];
    const OSSL_PARAM params[] = { crypto_digest(), OSSL_PARAM_construct_end() };
    EVP_MAC *mac = EVP_MAC_fetch(NULL, OSSL_MAC_NAME_HMAC, NULL);
    EVP_MAC_CTX *c = mac ? EVP_MAC_CTX_new(mac) : NULL;

    EVP_MAC_free(mac); /* the context shares it */
    if (c && EVP_MAC_init(c, no_key, sizeof no_key, params) == 1)
        return c;
    EVP_MAC_CTX_free(c);
    return NULL;
}

static void crypto_fetch(void)
{
    crypto_fetched.mac = crypto_mac_template();
    crypto_fetched.kdf = EVP_KDF_fetch(NULL, OSSL_KDF_NAME_HKDF, NULL);
}

tenrec_status crypto_mac(const void *key, size_t key_len, const struct crypto_part *part, size_t n,
                         uint8_t ret[CRYPTO_MAC_BYTES], tenrec_error *err)
{
    EVP_MAC_CTX *c;
    size_t len = 0;
    bool ok;

    pthread_once(&crypto_once, crypto_fetch);
    c = crypto_fetched.mac ? EVP_MAC_CTX_dup(crypto_fetched.mac) : NULL;
    ok = c && EVP_MAC_init(c, key, key_len, NULL) == 1;
    for (size_t i = 0; ok && i < n; i++)
        ok = EVP_MAC_update(c, part[i].data, part[i].len) == 1;
    ok = ok && EVP_MAC_final(c, ret, &len, CRYPTO_MAC_BYTES) == 1 && len == CRYPTO_MAC_BYTES;
    EVP_MAC_CTX_free(c);
    return ok ? TENREC_OK : crypto_fail("compute an HMAC-SHA256", err);
}

tenrec_status crypto_derive(const void *secret, size_t secret_len, struct crypto_part salt,
                            struct crypto_part info, void *ret, size_t len, tenrec_error *err)
{
    OSSL_PARAM params[5], *end = params;
    EVP_KDF_CTX *c;
    bool ok;

    *end++ = crypto_digest();
    *end++ =
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, crypto_unconst(secret), secret_len);
    if (salt.len)
        *end++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, crypto_unconst(salt.data),
                                                   salt.len);
    if (info.len)
        *end++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, crypto_unconst(info.data),
                                                   info.len);
    *end = OSSL_PARAM_construct_end();
    pthread_once(&crypto_once, crypto_fetch);
    c = crypto_fetched.kdf ? EVP_KDF_CTX_new(crypto_fetched.kdf) : NULL;
    ok = c && EVP_KDF_derive(c, ret, len, params) == 1;
    EVP_KDF_CTX_free(c);
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
