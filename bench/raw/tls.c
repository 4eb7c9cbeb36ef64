/* SPDX-License-Identifier: Apache-2.0 */
/* tls.c - OpenSSL over TCP on loopback, with full records, as Tenrec sets it up: TLS 1.3 with a
 * pre-shared key and AES-128-GCM, and a buffer that takes several records from one read. */
#include "raw.h"

#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_AHEAD (66u << 10)

static const char tls_identity[] = "bench";
static const unsigned char tls_key[32] = { 1 };
static const unsigned char tls_cipher[] = { 0x13, 0x01 }; /* TLS_AES_128_GCM_SHA256 */

struct tls_end {
    int fd[2]; /* [0] the caller's */
    SSL *ssl;
    char *data;
};

static SSL_SESSION *tls_session(SSL *ssl)
{
    SSL_SESSION *s = SSL_SESSION_new();

    if (!s || !SSL_SESSION_set1_master_key(s, tls_key, sizeof tls_key) ||
        !SSL_SESSION_set_cipher(s, SSL_CIPHER_find(ssl, tls_cipher)) ||
        !SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION))
        pair_die("no session");
    return s;
}

static int tls_offer(SSL *ssl, const EVP_MD *digest, const unsigned char **ret_id, size_t *ret_len,
                     SSL_SESSION **ret)
{
    (void)digest;
    *ret_id = (const unsigned char *)tls_identity;
    *ret_len = sizeof tls_identity - 1;
    *ret = tls_session(ssl);
    return 1;
}

static int tls_find(SSL *ssl, const unsigned char *id, size_t len, SSL_SESSION **ret)
{
    (void)id;
    (void)len;
    *ret = tls_session(ssl);
    return 1;
}

static SSL *tls_begin(int fd, bool caller)
{
    SSL_CTX *c = SSL_CTX_new(TLS_method());
    SSL *ssl;

    if (!c || !SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) ||
        !SSL_CTX_set_ciphersuites(c, "TLS_AES_128_GCM_SHA256"))
        pair_die("no TLS 1.3");
    SSL_CTX_set_num_tickets(c, 0);
    SSL_CTX_set_read_ahead(c, 1);
    SSL_CTX_set_default_read_buffer_len(c, READ_AHEAD);
    SSL_CTX_set_psk_use_session_callback(c, tls_offer);
    SSL_CTX_set_psk_find_session_callback(c, tls_find);
    ssl = SSL_new(c);
    SSL_CTX_free(c);
    if (!ssl || !SSL_set_fd(ssl, fd) || (caller ? SSL_connect(ssl) : SSL_accept(ssl)) != 1)
        pair_die("no handshake");
    return ssl;
}

static bool tls_read(SSL *ssl, char *to, size_t len)
{
    for (size_t n; len > 0; to += n, len -= n)
        if (SSL_read_ex(ssl, to, len, &n) != 1)
            return false;
    return true;
}

static void tls_write(SSL *ssl, const void *data, size_t len)
{
    size_t n;

    if (SSL_write_ex(ssl, data, len, &n) != 1 || n != len)
        pair_die("SSL_write");
}

static void prepare(struct trial *t)
{
    struct tls_end *s = calloc(1, sizeof *s);

    if (!s)
        pair_die("calloc");
    raw_tcp_pair(s->fd);
    t->state = s;
}

static int serve(struct trial *t)
{
    struct tls_end *s = t->state;
    char answer[PAIR_SMALL] = { 1 };
    char *data = pair_memory(t->size, false);
    bool first = raw_is_large(t);

    close(s->fd[0]);
    s->ssl = tls_begin(s->fd[1], false);
    while (tls_read(s->ssl, data, t->size)) {
        if (first)
            pair_expect(t->peer, data, t->size);
        first = false;
        tls_write(s->ssl, answer, sizeof answer);
    }
    return 0;
}

static void start(struct trial *t)
{
    struct tls_end *s = t->state;

    close(s->fd[1]);
    s->data = pair_memory(t->size, false);
    pair_fill(s->data, t->size);
    s->ssl = tls_begin(s->fd[0], true);
}

static void call(struct trial *t)
{
    struct tls_end *s = t->state;
    char answer[PAIR_SMALL];

    tls_write(s->ssl, s->data, t->size);
    if (!tls_read(s->ssl, answer, sizeof answer))
        pair_die("the callee ended");
}

static void end(struct trial *t)
{
    struct tls_end *s = t->state;

    SSL_free(s->ssl);
    close(s->fd[0]);
}

const struct way raw_tls = { .peer = "raw",
                             .via = "tls",
                             .modes = "latency bandwidth",
                             .progress = "sleep",
                             .prepare = prepare,
                             .serve = serve,
                             .open = start,
                             .call = call,
                             .close = end };
