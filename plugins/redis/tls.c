/* SPDX-License-Identifier: Apache-2.0 */
#include "tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdlib.h>

struct tls_context {
    SSL_CTX *ctx;
};

struct tls {
    SSL *ssl;
    BIO *in, *out; /* memory; owned by ssl */
};

/* The first reason in this thread's queue, which is emptied. */
static const char *tls_reason(void)
{
    const unsigned long code = ERR_get_error();
    const char *text = code ? ERR_reason_error_string(code) : NULL;

    ERR_clear_error();
    return text ? text : "no reason is known";
}

/* Without this, OpenSSL asks the terminal for the passphrase of a key, and waits for ever. */
static int tls_no_passphrase(char *ret, int room, int writes, void *arg)
{
    (void)ret;
    (void)room;
    (void)writes;
    (void)arg;
    return -1;
}

static tenrec_status tls_load(SSL_CTX *ctx, const struct tls_files *files, tenrec_error *err)
{
    if (*files->ca ? SSL_CTX_load_verify_file(ctx, files->ca) != 1
                   : SSL_CTX_set_default_verify_paths(ctx) != 1)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "cannot read the certificates of 'ca_file' \"%s\": %s", files->ca,
                           tls_reason());
    if (!*files->cert)
        return TENREC_OK;
    if (SSL_CTX_use_certificate_chain_file(ctx, files->cert) != 1)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "cannot read the certificate of 'cert_file' \"%s\": %s", files->cert,
                           tls_reason());
    if (SSL_CTX_use_PrivateKey_file(ctx, files->key, SSL_FILETYPE_PEM) != 1)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "cannot use the key of 'key_file' \"%s\" for the certificate: %s",
                           files->key, tls_reason());
    return TENREC_OK;
}

tenrec_status tls_context_open(const struct tls_files *files, struct tls_context **ret,
                               tenrec_error *err)
{
    struct tls_context *c = calloc(1, sizeof *c);
    tenrec_status st;

    if (!c || !(c->ctx = SSL_CTX_new(TLS_client_method()))) {
        tls_context_drop(c);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for TLS");
    }
    ERR_clear_error();
    SSL_CTX_set_min_proto_version(c->ctx, TLS1_2_VERSION);
    SSL_CTX_set_verify(c->ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_default_passwd_cb(c->ctx, tls_no_passphrase);
    st = tls_load(c->ctx, files, err);
    if (st == TENREC_OK)
        *ret = c;
    else
        tls_context_drop(c);
    return st;
}

void tls_context_drop(struct tls_context *c)
{
    if (!c)
        return;
    SSL_CTX_free(c->ctx);
    free(c);
}

/* The certificate must have the host; an address is compared as one. */
static bool tls_expect(SSL *ssl, const char *host)
{
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1)
        return true;
    ERR_clear_error();
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

tenrec_status tls_open(struct tls_context *c, const char *host, struct tls **ret, tenrec_error *err)
{
    struct tls *t = calloc(1, sizeof *t);

    if (t && (t->ssl = SSL_new(c->ctx)) && (t->in = BIO_new(BIO_s_mem())) &&
        (t->out = BIO_new(BIO_s_mem()))) {
        SSL_set_bio(t->ssl, t->in, t->out);
        SSL_set_connect_state(t->ssl);
        if (tls_expect(t->ssl, host)) {
            *ret = t;
            return TENREC_OK;
        }
    } else if (t) {
        BIO_free(t->in);
    }
    tls_drop(t);
    return tenrec_fail(err, TENREC_ENOMEM, "no memory for TLS");
}

void tls_drop(struct tls *t)
{
    if (!t)
        return;
    SSL_free(t->ssl);
    free(t);
}

/* Explains why OpenSSL failed. It reads the thread's queue of errors, so each operation begins with
 * ERR_clear_error: the program may have left some there. */
static enum tls_step tls_explain(struct tls *t, int result, tenrec_error *err)
{
    const int kind = SSL_get_error(t->ssl, result);
    const long refused = SSL_get_verify_result(t->ssl);
    int reason;

    if (kind == SSL_ERROR_WANT_READ)
        return TLS_MORE;
    if (kind == SSL_ERROR_ZERO_RETURN)
        return TLS_ENDED;
    reason = ERR_GET_REASON(ERR_peek_error());
    if (refused != X509_V_OK)
        tenrec_fail(err, TENREC_ECONFIG,
                    "the server's certificate is refused (%s): see the option 'ca_file'",
                    X509_verify_cert_error_string(refused));
    else if (reason == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED ||
             reason == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE)
        tenrec_fail(
            err, TENREC_ECONFIG,
            "the server asks for a certificate: see the options 'cert_file' and 'key_file'");
    else if (reason == SSL_R_WRONG_VERSION_NUMBER)
        tenrec_fail(err, TENREC_EPROTOCOL,
                    "the server does not speak TLS at this port: rediss:// needs its tls-port");
    else
        tenrec_fail(err, TENREC_EPROTOCOL, "TLS with the server failed: %s", tls_reason());
    ERR_clear_error();
    return TLS_FAILED;
}

enum tls_step tls_shake(struct tls *t, tenrec_error *err)
{
    int result;

    ERR_clear_error();
    result = SSL_do_handshake(t->ssl);
    return result == 1 ? TLS_DONE : tls_explain(t, result, err);
}

tenrec_status tls_take(struct tls *t, const void *wire, size_t len, tenrec_error *err)
{
    if (BIO_write(t->in, wire, (int)len) == (int)len)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_ENOMEM, "no memory for a reply");
}

enum tls_step tls_read(struct tls *t, void *ret, size_t room, size_t *ret_len, tenrec_error *err)
{
    int result;

    ERR_clear_error();
    result = SSL_read_ex(t->ssl, ret, room, ret_len);
    return result == 1 ? TLS_DONE : tls_explain(t, result, err);
}

tenrec_status tls_write(struct tls *t, const void *data, size_t len, tenrec_error *err)
{
    size_t written;

    ERR_clear_error();
    if (len == 0 || SSL_write_ex(t->ssl, data, len, &written) == 1)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EPEER_LOST, "TLS with the server failed: %s", tls_reason());
}

const char *tls_output(struct tls *t, size_t *ret_len)
{
    char *data = NULL;
    const long len = BIO_get_mem_data(t->out, &data);

    *ret_len = len > 0 ? (size_t)len : 0;
    return data;
}

void tls_sent(struct tls *t)
{
    (void)BIO_reset(t->out);
}
