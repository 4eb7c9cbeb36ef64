/* SPDX-License-Identifier: Apache-2.0 */
/* tls_psk.c - the external pre-shared key of TLS 1.3 (RFC 8446, 2.2), derived from the secret. It
 * is derived for each handshake, so that it stays in no memory. */
#include "security/secret/crypto.h"
#include "security/tls/tls_context.h"

#include <string.h>

/* A stranger may see it: it says which derivation is meant. */
static const char psk_identity[] = "tenrec 1";
static const unsigned char psk_cipher[] = { 0x13, 0x01 }; /* TLS_AES_128_GCM_SHA256 */
#define PSK_PURPOSE "tenrec tls psk 1"
#define PSK_BYTES 32

/* Returns NULL if something is missing: the handshake then fails. */
static SSL_SESSION *psk_session(SSL *ssl)
{
    const struct secret *secret = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, psk_cipher);
    SSL_SESSION *session = SSL_SESSION_new();
    unsigned char key[PSK_BYTES];
    bool ok = session && cipher &&
              secret_derive(secret, PSK_PURPOSE, key, sizeof key, NULL) == TENREC_OK &&
              SSL_SESSION_set1_master_key(session, key, sizeof key) == 1 &&
              SSL_SESSION_set_cipher(session, cipher) == 1 &&
              SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1;

    crypto_wipe(key, sizeof key);
    if (ok)
        return session;
    SSL_SESSION_free(session);
    return NULL;
}

/* The dialler's. `digest` is NULL at first; after a retry it is that of the listener's cipher. */
static int psk_offer(SSL *ssl, const EVP_MD *digest, const unsigned char **ret_id, size_t *ret_len,
                     SSL_SESSION **ret)
{
    *ret = NULL;
    *ret_id = (const unsigned char *)psk_identity;
    *ret_len = sizeof psk_identity - 1;
    if (digest && EVP_MD_get_type(digest) != NID_sha256)
        return 1; /* without the key, which fails at the listener */
    *ret = psk_session(ssl);
    return *ret != NULL;
}

/* The listener's. */
static int psk_find(SSL *ssl, const unsigned char *id, size_t len, SSL_SESSION **ret)
{
    *ret = NULL;
    if (len != sizeof psk_identity - 1 || memcmp(id, psk_identity, len) != 0)
        return 1;
    *ret = psk_session(ssl);
    return *ret != NULL;
}

void tls_psk_use(SSL_CTX *context, struct secret *secret)
{
    SSL_CTX_set_app_data(context, secret);
    SSL_CTX_set_psk_use_session_callback(context, psk_offer);
    SSL_CTX_set_psk_find_session_callback(context, psk_find);
}
