/* SPDX-License-Identifier: Apache-2.0 */
#include "authority.h"

#include "../testing.h"

#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <unistd.h>

#define DAY_S 86400L

static void authority_extend(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509_EXTENSION *extension;

    X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    assert_non_null(extension);
    assert_int_equal(X509_add_ext(cert, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

static X509 *authority_fill(EVP_PKEY *key, const char *name, X509_NAME *issuer, long from_s,
                            long until_s)
{
    static long serial = 1;
    X509 *cert = X509_new();
    X509_NAME *subject = X509_get_subject_name(cert);

    assert_non_null(cert);
    X509_set_version(cert, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), serial++);
    X509_gmtime_adj(X509_getm_notBefore(cert), from_s);
    X509_gmtime_adj(X509_getm_notAfter(cert), until_s);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(cert, issuer ? issuer : subject);
    X509_set_pubkey(cert, key);
    return cert;
}

struct authority authority_make(const char *name)
{
    struct authority a = { .key = EVP_EC_gen("P-256") };

    assert_non_null(a.key);
    a.cert = authority_fill(a.key, name, NULL, -DAY_S, DAY_S);
    authority_extend(a.cert, a.cert, NID_basic_constraints, "critical,CA:TRUE");
    authority_extend(a.cert, a.cert, NID_key_usage, "critical,keyCertSign,cRLSign");
    assert_true(X509_sign(a.cert, a.key, EVP_sha256()) > 0);
    return a;
}

void authority_drop(struct authority *a)
{
    X509_free(a->cert);
    EVP_PKEY_free(a->key);
}

static void authority_write_cert(X509 *cert, const char *path)
{
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    assert_int_equal(PEM_write_X509(f, cert), 1);
    assert_int_equal(fclose(f), 0);
}

void authority_write(const struct authority *a, const char *path)
{
    authority_write_cert(a->cert, path);
}

void authority_issue(const struct authority *a, const char *names, long from_s, long until_s,
                     const char *cert_path, const char *key_path)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = authority_fill(key, "leaf", X509_get_subject_name(a->cert), from_s, until_s);
    int fd;
    FILE *f;

    if (names)
        authority_extend(cert, a->cert, NID_subject_alt_name, names);
    assert_true(X509_sign(cert, a->key, EVP_sha256()) > 0);
    authority_write_cert(cert, cert_path);
    unlink(key_path);
    fd = open(key_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    f = fdopen(fd, "w");
    assert_non_null(f);
    assert_int_equal(PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL), 1);
    assert_int_equal(fclose(f), 0);
    X509_free(cert);
    EVP_PKEY_free(key);
}
