/* SPDX-License-Identifier: Apache-2.0 */
#include "security/tls/tls_session_inside.h"

#include "core/base/memory.h"
#include "security/secret/crypto.h"

#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the whole ---------------------------------------------------------------- */

static SSL_CTX *session_context(struct tls *t)
{
    SSL_CTX *newer, *context;

    pthread_mutex_lock(&t->lock);
    newer = t->certificates ? tls_certificates_refresh(t->certificates) : NULL;
    if (newer) {
        SSL_CTX_free(t->context);
        t->context = newer;
    }
    context = t->context;
    SSL_CTX_up_ref(context);
    pthread_mutex_unlock(&t->lock);
    return context;
}

/* Without a socket nothing is gained by a large read. A server has many such sessions, most of them
 * idle. */
static void session_save_memory(SSL *ssl)
{
    SSL_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
    SSL_set_read_ahead(ssl, 0);
    SSL_set_default_read_buffer_len(ssl, 0);
}

static bool session_make(struct tls_session *s)
{
    SSL_CTX *context = session_context(s->tls);
    BIO *bio = tls_bio_new(&s->wire);

    s->ssl = bio ? SSL_new(context) : NULL;
    SSL_CTX_free(context); /* the session has its own reference */
    if (!s->ssl) {
        BIO_free(bio);
        return false;
    }
    SSL_set_app_data(s->ssl, s);
    SSL_set_bio(s->ssl, bio, bio);
    if (s->wire.fd < 0)
        session_save_memory(s->ssl);
    if (s->side == TLS_DIALLER)
        SSL_set_connect_state(s->ssl);
    else
        SSL_set_accept_state(s->ssl);
    return true;
}

tenrec_status tls_session_open(struct tls *t, int fd, enum tls_side side, struct tls_session **ret,
                               tenrec_error *err)
{
    struct tls_session *s = memory_new(1, sizeof *s);

    if (!s)
        return memory_fail(err);
    s->tls = tls_share(t);
    s->side = side;
    s->wire.fd = fd;
    pthread_mutex_init(&s->lock, NULL);
    ERR_clear_error();
    if (!session_make(s)) {
        tls_session_close(s);
        return tenrec_fail(err, TENREC_EOS, "libssl cannot make a session: %s", tls_reason());
    }
    *ret = s;
    return TENREC_OK;
}

void tls_session_close(struct tls_session *s)
{
    if (!s)
        return;
    SSL_free(s->ssl);
    if (s->text)
        crypto_wipe(s->text, RECORD_MAX);
    free(s->text);
    tls_wire_finish(&s->wire);
    tls_drop(s->tls);
    pthread_mutex_destroy(&s->lock);
    crypto_wipe(s, sizeof *s);
    free(s);
}

/* ---- the handshake ---------------------------------------------------------------- */

/* A listener that does not know the key may show a certificate of its own instead. */
static bool session_proved(const struct tls_session *s)
{
    X509 *peer;

    if (s->tls->secret)
        return SSL_session_reused(s->ssl) == 1;
    peer = SSL_get0_peer_certificate(s->ssl);
    return peer && SSL_get_verify_result(s->ssl) == X509_V_OK;
}

static tenrec_status session_shake(struct tls_session *s)
{
    int r, kind;

    if (s->failed)
        return TENREC_EPERM;
    if (SSL_in_before(s->ssl))
        tls_kernel_offer(s);
    ERR_clear_error();
    r = SSL_do_handshake(s->ssl);
    kind = r == 1 ? SSL_ERROR_NONE : SSL_get_error(s->ssl, r);
    tls_wire_flush(&s->wire);
    if (kind == SSL_ERROR_WANT_READ ||
        (r == 1 && tls_buffer_left(&s->wire.out) > 0 && s->wire.fd >= 0 && !s->wire.broken))
        return TENREC_EAGAIN;
    if (kind != SSL_ERROR_NONE)
        return tls_session_fail(s, kind);
    if (!session_proved(s)) {
        s->failed = true;
        snprintf(s->reason, sizeof s->reason, "the other side gave no proof of %s",
                 s->tls->secret ? "the group secret" : "its certificate");
        return TENREC_EPERM;
    }
    if (!s->text && !(s->text = malloc(RECORD_MAX))) {
        s->failed = true;
        snprintf(s->reason, sizeof s->reason, "no memory for TLS");
        return TENREC_ENOMEM;
    }
    s->wire.dataless = 0;
    tls_kernel_begin(s);
    snprintf(s->cipher, sizeof s->cipher, "%s %s, encrypts: %s, decrypts: %s",
             SSL_get_version(s->ssl), SSL_get_cipher_name(s->ssl),
             s->kernel_sends ? "kernel" : "library", s->kernel_receives ? "kernel" : "library");
    return TENREC_OK;
}

tenrec_status tls_session_shake(struct tls_session *s, tenrec_error *err)
{
    tenrec_status st;

    pthread_mutex_lock(&s->lock);
    st = session_shake(s);
    pthread_mutex_unlock(&s->lock);
    if (st == TENREC_OK || st == TENREC_EAGAIN)
        return st;
    return tenrec_fail(err, st, "%s", s->reason);
}

bool tls_session_is_congested(struct tls_session *s)
{
    bool waits;

    pthread_mutex_lock(&s->lock);
    waits = s->wire.fd >= 0 && tls_buffer_left(&s->wire.out) > 0;
    pthread_mutex_unlock(&s->lock);
    return waits;
}
