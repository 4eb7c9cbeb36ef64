/* SPDX-License-Identifier: Apache-2.0 */
/* tls.h - the means of this process to prove itself by TLS 1.3: a key that is derived from the
 * group secret, or a certificate. OpenSSL is behind it, and in no header. */
#ifndef TENREC_TLS_TLS_H
#define TENREC_TLS_TLS_H

#include "security/secret/secret.h"

#include <tenrec/plugin.h>

struct tls; /* counted; shared by threads */

/* Files in PEM form. Texts are borrowed for the call. */
struct tls_files {
    const char *ca;      /* authorities of the peers' certificates */
    const char *cert;    /* our own, with the chain up to the authority */
    const char *key;     /* of it, of mode 0600 */
    uint64_t refresh_ms; /* between two checks for changed files; TENREC_FOREVER: never */
    struct tenrec_option_list names; /* of which a peer's certificate must have one; empty: the name
                                        of the worker */
};

/* With a pre-shared key of the secret (shared), and Diffie-Hellman. errors: EOS, ENOMEM */
tenrec_status tls_open_secret(struct secret *secret, struct tls **ret, tenrec_error *err);
/* With certificates of both sides.
 * errors: ECONFIG: a file cannot be used, others may read the key; ENOMEM */
tenrec_status tls_open_files(const struct tls_files *files, struct tls **ret, tenrec_error *err);
/* Leaves all encryption to OpenSSL; before the first session. */
void tls_forbid_kernel(struct tls *t);
struct tls *tls_share(struct tls *t);
void tls_drop(struct tls *t); /* NULL is fine */

#endif
