/* SPDX-License-Identifier: Apache-2.0 */
/* authority.h - certificates for tests: an authority, and what it signs, in files of a folder. */
#ifndef TENREC_TESTS_SUPPORT_AUTHORITY_H
#define TENREC_TESTS_SUPPORT_AUTHORITY_H

#include <openssl/x509.h>

struct authority {
    EVP_PKEY *key;
    X509 *cert;
};

struct authority authority_make(const char *name);
void authority_drop(struct authority *a);
void authority_write(const struct authority *a, const char *path);

/* Signs a certificate for the DNS names in `names` ("DNS:worker0,DNS:worker1"; NULL: none), valid
 * from and until so many seconds from now; the key gets mode 0600. */
void authority_issue(const struct authority *a, const char *names, long from_s, long until_s,
                     const char *cert_path, const char *key_path);

#endif
