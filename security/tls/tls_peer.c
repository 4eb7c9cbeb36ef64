/* SPDX-License-Identifier: Apache-2.0 */
/* tls_peer.c - what a session knows of the other side. */
#include "security/tls/tls_session_inside.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>

tenrec_status tls_session_binding(struct tls_session *s, uint8_t ret[TLS_BINDING_BYTES],
                                  tenrec_error *err)
{
    static const char label[] = "EXPORTER-tenrec-proof";
    bool ok;

    pthread_mutex_lock(&s->lock);
    ERR_clear_error();
    ok = SSL_export_keying_material(s->ssl, ret, TLS_BINDING_BYTES, label, sizeof label - 1, NULL,
                                    0, 0) == 1;
    pthread_mutex_unlock(&s->lock);
    return ok ? TENREC_OK
              : tenrec_fail(err, TENREC_EOS, "libssl cannot export a value: %s", tls_reason());
}

/* The names of a certificate, as far as they fit. */
static void peer_list_names(X509 *peer, char *ret, size_t cap)
{
    GENERAL_NAMES *all = X509_get_ext_d2i(peer, NID_subject_alt_name, NULL, NULL);
    size_t len = 0;

    snprintf(ret, cap, "no name");
    for (int i = 0; all && i < sk_GENERAL_NAME_num(all); i++) {
        const GENERAL_NAME *const one = sk_GENERAL_NAME_value(all, i);
        if (one->type != GEN_DNS || len >= cap)
            continue;
        len += (size_t)snprintf(ret + len, cap - len, "%s'%.*s'", len ? ", " : "",
                                ASN1_STRING_length(one->d.dNSName),
                                (const char *)ASN1_STRING_get0_data(one->d.dNSName));
    }
    GENERAL_NAMES_free(all);
}

int tls_session_check_peer(int ok, X509_STORE_CTX *chain)
{
    SSL *const ssl = X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tls_session *const s = SSL_get_app_data(ssl);
    X509 *const peer = X509_STORE_CTX_get_current_cert(chain);
    char names[128];

    if (!ok || X509_STORE_CTX_get_error_depth(chain) > 0 ||
        tls_certificates_admit(s->tls->certificates, peer, ""))
        return ok;
    peer_list_names(peer, names, sizeof names);
    snprintf(s->reason, sizeof s->reason,
             "the other side's certificate is for %s, none of security.mtls.names", names);
    X509_STORE_CTX_set_error(chain, X509_V_ERR_HOSTNAME_MISMATCH);
    return 0;
}

tenrec_status tls_session_check_name(struct tls_session *s, const char *name, tenrec_error *err)
{
    const struct tls_certificates *const certificates = s->tls->certificates;
    char names[160];
    X509 *peer;

    if (!certificates)
        return TENREC_OK;
    peer = SSL_get0_peer_certificate(s->ssl);
    if (peer && tls_certificates_admit(certificates, peer, name))
        return TENREC_OK;
    if (!peer)
        return tenrec_fail(err, TENREC_EPERM, "the other side gave no certificate");
    peer_list_names(peer, names, sizeof names);
    return tenrec_fail(err, TENREC_EPERM, "the other side's certificate is for %s, not for '%s'",
                       names, name);
}

const char *tls_session_describe(const struct tls_session *s)
{
    return s->cipher;
}
