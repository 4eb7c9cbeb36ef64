/* SPDX-License-Identifier: Apache-2.0 */
#include "security/tls/tls_context.h"

#include "core/base/memory.h"

#include <openssl/err.h>
#include <stdlib.h>

#define CERTIFICATES_MAX 32768 /* bytes of a peer's certificates */

const char *tls_reason(void)
{
    const unsigned long code = ERR_get_error();
    const char *text = code ? ERR_reason_error_string(code) : NULL;

    ERR_clear_error();
    return text ? text : "no reason is known";
}

tenrec_status tls_context_new(SSL_CTX **ret, tenrec_error *err)
{
    SSL_CTX *c;

    ERR_clear_error();
    c = SSL_CTX_new(TLS_method());
    if (!c)
        return tenrec_fail(err, TENREC_EOS, "libssl cannot make a context: %s", tls_reason());
    /* AES-128-GCM is what two workers choose; the other is for peers without it. Their hash is that
     * of the pre-shared key. */
    if (SSL_CTX_set_max_proto_version(c, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(c, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") != 1) {
        SSL_CTX_free(c);
        return tenrec_fail(err, TENREC_EOS, "libssl has no TLS 1.3: %s", tls_reason());
    }
    SSL_CTX_set_max_cert_list(c, CERTIFICATES_MAX);
    /* Nothing is resumed: each connection proves by itself. A connection that is cut without a
     * farewell is a lost peer, which the protocol above finds in its own frames. */
    SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(c, 0);
    SSL_CTX_set_options(c, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                               SSL_OP_IGNORE_UNEXPECTED_EOF);
    /* Sessions that the kernel may encrypt ask for it; OpenSSL's own configuration must not. */
    SSL_CTX_clear_options(c, SSL_OP_ENABLE_KTLS);
    SSL_CTX_set_read_ahead(c, 1);
    *ret = c;
    return TENREC_OK;
}

static tenrec_status tls_new(struct tls **ret, tenrec_error *err)
{
    struct tls *t = memory_new(1, sizeof *t);

    if (!t)
        return memory_fail(err);
    atomic_init(&t->shares, 1);
    pthread_mutex_init(&t->lock, NULL);
    t->kernel = tls_kernel_usable(TLS_KERNEL_STATISTICS);
    *ret = t;
    return TENREC_OK;
}

void tls_forbid_kernel(struct tls *t)
{
    t->kernel = false;
}

tenrec_status tls_open_secret(struct secret *secret, struct tls **ret, tenrec_error *err)
{
    struct tls *t = NULL;
    tenrec_status st = tls_new(&t, err);

    if (st == TENREC_OK)
        st = tls_context_new(&t->context, err);
    if (st != TENREC_OK) {
        tls_drop(t);
        return st;
    }
    t->secret = secret_share(secret);
    tls_psk_use(t->context, secret);
    *ret = t;
    return TENREC_OK;
}

tenrec_status tls_open_files(const struct tls_files *files, struct tls **ret, tenrec_error *err)
{
    struct tls *t = NULL;
    tenrec_status st = tls_new(&t, err);

    if (st == TENREC_OK)
        st = tls_certificates_new(files, &t->certificates, err);
    if (st == TENREC_OK)
        st = tls_certificates_load(t->certificates, &t->context, err);
    if (st == TENREC_OK)
        *ret = t;
    else
        tls_drop(t);
    return st;
}

struct tls *tls_share(struct tls *t)
{
    /* Relaxed: the caller's own share keeps it alive. */
    atomic_fetch_add_explicit(&t->shares, 1, memory_order_relaxed);
    return t;
}

void tls_drop(struct tls *t)
{
    if (!t || atomic_fetch_sub_explicit(&t->shares, 1, memory_order_acq_rel) > 1)
        return;
    SSL_CTX_free(t->context);
    secret_drop(t->secret);
    tls_certificates_drop(t->certificates);
    pthread_mutex_destroy(&t->lock);
    free(t);
}
