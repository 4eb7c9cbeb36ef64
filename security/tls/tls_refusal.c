/* SPDX-License-Identifier: Apache-2.0 */
/* tls_refusal.c - what went wrong in a session, for people. */
#include "security/tls/tls_session_inside.h"

#include <openssl/err.h>
#include <stdio.h>
#include <string.h>

/* The peer's refusal, as its alert says it. */
static const char *refusal_of_peer(const struct tls_session *s, int reason)
{
    switch (reason) {
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
    case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER:
        return s->tls->secret ? "the other side has another group secret"
                              : "the other side refuses the signature of this worker";
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
        return s->tls->secret ? "the other side demands another proof than the group secret"
                              : "the other side demands another certificate";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
        return "the other side does not know the authority of this worker's certificate";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
        return "the other side says that this worker's certificate has expired";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
        return "the other side refuses this worker's certificate";
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
        return "the other side speaks no TLS 1.3";
    default:
        return NULL;
    }
}

/* Our own refusal. NULL: the peer broke the protocol. */
static const char *refusal_text(const struct tls_session *s, int reason)
{
    switch (reason) {
    case SSL_R_BINDER_DOES_NOT_VERIFY:
    case SSL_R_BAD_PSK:
        return "the other side has another group secret";
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_NO_CERTIFICATE_SET:
        return s->tls->secret ? "the other side gave no proof of the group secret"
                              : "the two sides have no cipher or signature in common";
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
        return "the other side gave no certificate";
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
        return X509_verify_cert_error_string(SSL_get_verify_result(s->ssl));
    default:
        return refusal_of_peer(s, reason);
    }
}

static bool refusal_is_end(const struct tls_session *s, int kind)
{
    return s->wire.broken || s->wire.ended || kind == SSL_ERROR_ZERO_RETURN;
}

static void refusal_tell(struct tls_session *s, int kind, int reason, const char *refusal)
{
    if (refusal)
        snprintf(s->reason, sizeof s->reason, "%s%s",
                 reason == SSL_R_CERTIFICATE_VERIFY_FAILED
                     ? "the other side's certificate is refused: "
                     : "",
                 refusal);
    else if (s->wire.dataless > TLS_DATALESS_MAX)
        snprintf(s->reason, sizeof s->reason, "the other side sent %zu bytes of TLS without data",
                 s->wire.dataless);
    else if (kind == SSL_ERROR_WANT_WRITE) /* to the reader, which no event would wake */
        snprintf(s->reason, sizeof s->reason,
                 "the socket has no room for a change of keys: the other side does not read");
    else if (refusal_is_end(s, kind))
        snprintf(s->reason, sizeof s->reason, "the other side closed the connection during TLS%s%s",
                 s->wire.broken ? ": " : "", s->wire.broken ? strerror(s->wire.broken) : "");
    else
        snprintf(s->reason, sizeof s->reason, "the other side speaks no TLS as expected: %s",
                 tls_reason());
}

tenrec_status tls_session_fail(struct tls_session *s, int kind)
{
    const unsigned long code = ERR_peek_error();
    const int reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;
    const char *const refusal = reason ? refusal_text(s, reason) : NULL;

    s->failed = true;
    if (!*s->reason) /* tls_session_check_peer has given its own */
        refusal_tell(s, kind, reason, refusal);
    ERR_clear_error();
    if (refusal)
        return TENREC_EPERM;
    return refusal_is_end(s, kind) ? TENREC_ECONNECT : TENREC_EPROTOCOL;
}

const char *tls_session_reason(const struct tls_session *s)
{
    return s->reason;
}
