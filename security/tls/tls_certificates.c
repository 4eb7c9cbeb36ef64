/* SPDX-License-Identifier: Apache-2.0 */
/* tls_certificates.c - the files of mode mtls, read again when they change. */
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "security/tls/tls_context.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const certificates_key[] = { "ca", "cert", "key" };

/* Without this, OpenSSL asks the terminal for the passphrase of a key, and waits for ever. */
static int certificates_no_passphrase(char *ret, int room, int writes, void *arg)
{
    (void)ret;
    (void)room;
    (void)writes;
    (void)arg;
    return -1;
}

static tenrec_status certificates_look(const struct tls_certificates *c,
                                       struct tls_stamp ret[TLS_FILES], tenrec_error *err)
{
    struct stat found;

    for (size_t i = 0; i < TLS_FILES; i++) {
        if (stat(c->path[i], &found) < 0)
            return tenrec_fail_errno(err, TENREC_ECONFIG, errno,
                                     "security.mtls.%s: cannot read '%s'", certificates_key[i],
                                     c->path[i]);
        ret[i] =
            (struct tls_stamp){ (int64_t)found.st_mtim.tv_sec * 1000000000 + found.st_mtim.tv_nsec,
                                found.st_ino, (uint64_t)found.st_size };
    }
    return private_file_check("security.mtls.key:", c->path[TLS_KEY], &found, err);
}

static tenrec_status certificates_check_time(SSL_CTX *context, const char *path, tenrec_error *err)
{
    const X509 *const own = SSL_CTX_get0_certificate(context);

    if (X509_cmp_current_time(X509_get0_notAfter(own)) < 0)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "security.mtls.cert: the certificate '%s' has expired", path);
    if (X509_cmp_current_time(X509_get0_notBefore(own)) > 0)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "security.mtls.cert: the certificate '%s' is not valid yet", path);
    return TENREC_OK;
}

static tenrec_status certificates_read(const struct tls_certificates *c, SSL_CTX *context,
                                       tenrec_error *err)
{
    SSL_CTX_set_default_passwd_cb(context, certificates_no_passphrase);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                       tls_session_check_peer);
    if (SSL_CTX_load_verify_file(context, c->path[TLS_CA]) != 1)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "security.mtls.ca: cannot use the certificates in '%s': %s",
                           c->path[TLS_CA], tls_reason());
    if (SSL_CTX_use_certificate_chain_file(context, c->path[TLS_CERT]) != 1)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "security.mtls.cert: cannot use the certificate '%s': %s",
                           c->path[TLS_CERT], tls_reason());
    if (SSL_CTX_use_PrivateKey_file(context, c->path[TLS_KEY], SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context) != 1)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "security.mtls.key: cannot use the key '%s' for the certificate '%s': "
                           "%s",
                           c->path[TLS_KEY], c->path[TLS_CERT], tls_reason());
    return certificates_check_time(context, c->path[TLS_CERT], err);
}

tenrec_status tls_certificates_load(struct tls_certificates *c, SSL_CTX **ret, tenrec_error *err)
{
    struct tls_stamp stamp[TLS_FILES];
    SSL_CTX *context = NULL;
    tenrec_status st = certificates_look(c, stamp, err);

    if (st == TENREC_OK)
        st = tls_context_new(&context, err);
    if (st == TENREC_OK)
        st = certificates_read(c, context, err);
    if (st != TENREC_OK) {
        SSL_CTX_free(context);
        return st;
    }
    memcpy(c->stamp, stamp, sizeof stamp);
    *ret = context;
    return TENREC_OK;
}

SSL_CTX *tls_certificates_refresh(struct tls_certificates *c)
{
    struct tls_stamp stamp[TLS_FILES];
    SSL_CTX *context = NULL;
    tenrec_error why;

    if (!clock_passed(c->look_ns))
        return NULL;
    c->look_ns = clock_now_ns() + c->refresh_ns;
    if (certificates_look(c, stamp, &why) == TENREC_OK) {
        if (memcmp(stamp, c->stamp, sizeof stamp) == 0 ||
            tls_certificates_load(c, &context, &why) == TENREC_OK)
            return context;
    }
    log_line(TENREC_LOG_WARN, "security", "the old certificates stay in use: %s", why.text);
    return NULL;
}

static tenrec_status certificates_copy(struct tls_certificates *c, const struct tls_files *files)
{
    const char *const path[] = { files->ca, files->cert, files->key };

    for (size_t i = 0; i < TLS_FILES; i++)
        if (!(c->path[i] = memory_text(path[i])))
            return TENREC_ENOMEM;
    if (files->names.n == 0)
        return TENREC_OK;
    if (!(c->names = memory_new(files->names.n, sizeof *c->names)))
        return TENREC_ENOMEM;
    for (; c->n_names < files->names.n; c->n_names++)
        if (!(c->names[c->n_names] = memory_text(files->names.v[c->n_names].s)))
            return TENREC_ENOMEM;
    return TENREC_OK;
}

tenrec_status tls_certificates_new(const struct tls_files *files, struct tls_certificates **ret,
                                   tenrec_error *err)
{
    struct tls_certificates *c = memory_new(1, sizeof *c);

    if (!c || certificates_copy(c, files) != TENREC_OK) {
        tls_certificates_drop(c);
        return memory_fail(err);
    }
    if (files->refresh_ms == TENREC_FOREVER) {
        c->look_ns = CLOCK_NEVER;
    } else {
        c->refresh_ns = files->refresh_ms * 1000000u;
        c->look_ns = clock_now_ns() + c->refresh_ns;
    }
    *ret = c;
    return TENREC_OK;
}

void tls_certificates_drop(struct tls_certificates *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < TLS_FILES; i++)
        free(c->path[i]);
    for (size_t i = 0; i < c->n_names; i++)
        free(c->names[i]);
    free(c->names);
    free(c);
}

static bool certificates_have(X509 *peer, const char *name)
{
    const unsigned flags =
        X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS;

    return X509_check_host(peer, name, 0, flags, NULL) == 1;
}

bool tls_certificates_admit(const struct tls_certificates *c, X509 *peer, const char *name)
{
    if (c->n_names == 0)
        /* OpenSSL reads a name that begins with a point as any name that ends so. */
        return !*name || (*name != '.' && certificates_have(peer, name));
    for (size_t i = 0; i < c->n_names; i++)
        if (certificates_have(peer, c->names[i]))
            return true;
    return false;
}
