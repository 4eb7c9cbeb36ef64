/* SPDX-License-Identifier: Apache-2.0 */
/* tls_site.h - the demands of sides that use TLS: by a secret, or by certificates in files of a
 * folder that lasts for a case. */
#ifndef TENREC_TESTS_SUPPORT_TLS_SITE_H
#define TENREC_TESTS_SUPPORT_TLS_SITE_H

#include "secured.h"

/* Makes two authorities, "ours" and "theirs", each with a certificate for DNS:worker0 and
 * DNS:worker1, and one of ours that has expired: files ours.pem, theirs.pem,
 * AUTHORITY-leaf.{pem,key}, expired.{pem,key}.
 */
void tls_site_make(void);
void tls_site_remove(void);
const char *tls_site_path(const char *name); /* valid for a few calls */

/* Mode tls. The secret is `text`, of 16 characters or more. security_drop it. */
struct security *tls_site_secret(const char *text, enum security_plain store_plain);
/* Mode mtls, with the certificate that `leaf` has signed, and peers of `ca`. names: NULL, or the
 * one in `security.mtls.names`. security_drop it. */
struct security *tls_site_certificates(const char *leaf, const char *ca, const char *name,
                                       enum security_plain store_plain);

#endif
