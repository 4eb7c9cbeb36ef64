/* SPDX-License-Identifier: Apache-2.0 */
/* tls_context.h - the inside of struct tls; for the room only. */
#ifndef TENREC_TLS_TLS_CONTEXT_H
#define TENREC_TLS_TLS_CONTEXT_H

#include "security/tls/tls.h"

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* A file as it was when it was read. */
struct tls_stamp {
    int64_t changed_ns;
    uint64_t inode, size;
};

enum { TLS_CA, TLS_CERT, TLS_KEY, TLS_FILES };

/* The certificates of a process, and their files. */
struct tls_certificates {
    char *path[TLS_FILES]; /* owns */
    char **names;          /* owns; those that a peer's certificate may have */
    size_t n_names;
    uint64_t refresh_ns; /* CLOCK_NEVER: never */
    /* Under the lock. */
    uint64_t look_ns; /* when the files are looked at again */
    struct tls_stamp stamp[TLS_FILES];
};

struct tls {
    atomic_uint shares;
    struct secret *secret; /* shares; NULL with certificates */
    struct tls_certificates *certificates;
    bool kernel; /* may encrypt; not changed after the first session */
    pthread_mutex_t lock;
    SSL_CTX *context; /* under the lock; sessions keep theirs */
};

/* A context for TLS 1.3 alone, without tickets. errors: EOS */
tenrec_status tls_context_new(SSL_CTX **ret, tenrec_error *err);
/* Gives the SSL objects of a context their pre-shared key. */
void tls_psk_use(SSL_CTX *context, struct secret *secret);

/* Reads the files. errors: ECONFIG, ENOMEM */
tenrec_status tls_certificates_load(struct tls_certificates *c, SSL_CTX **ret, tenrec_error *err);
/* Reads changed files, at most once in refresh_ns. Returns a context, or NULL while the old one is
 * right: also when the new files cannot be used, which is logged. */
SSL_CTX *tls_certificates_refresh(struct tls_certificates *c);
tenrec_status tls_certificates_new(const struct tls_files *files, struct tls_certificates **ret,
                                   tenrec_error *err);
void tls_certificates_drop(struct tls_certificates *c);
/* Returns true if the certificate has the name, "" for one without a name; with demanded names, if
 * it has one of them. */
bool tls_certificates_admit(const struct tls_certificates *c, X509 *peer, const char *name);

#define TLS_KERNEL_STATISTICS "/proc/net/tls_stat"
/* Returns true if OpenSSL can give its keys to the kernel, and the kernel's statistics (a file) say
 * that it takes them, later ones too. */
bool tls_kernel_usable(const char *statistics);

/* OpenSSL's question of a peer's certificates, of which the first must have a demanded name: a
 * handshake that refuses tells the peer so, and a later check would not. */
int tls_session_check_peer(int ok, X509_STORE_CTX *chain);

/* The reason of the last failure in this thread, for people; empties OpenSSL's queue. */
const char *tls_reason(void);

#endif
