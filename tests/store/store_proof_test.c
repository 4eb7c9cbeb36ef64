/* SPDX-License-Identifier: Apache-2.0 */
/* store_proof_test.c - servers that do not prove the secret of a client, byte by byte. */
#include "../support/secured.h"
#include "loopback.h"

#include "core/base/clock.h"
#include "group/store/store_call.h"
#include "group/store/store_dial.h"

#include <stdatomic.h>

#define OURS "the secret of this group"
#define OTHER "the secret of another group"

/* A server of one connection: it proves `secret`, but sends at most `most` bytes, and then `tail`.
 */
struct server {
    int fd;
    const char *secret;
    size_t most;
    const char *tail;
    bool echoes; /* the client's bytes, instead */
    uint8_t sent[2 * PROOF_RECORD_MAX];
    size_t n_sent;
};

static void server_send(struct server *s, const void *data, size_t len)
{
    const size_t left = s->most - s->n_sent, n = len < left ? len : left;

    (void)!send(s->fd, data, n, MSG_NOSIGNAL);
    memcpy(s->sent + s->n_sent, data, n);
    s->n_sent += n;
}

static void server_answer(struct server *s, struct proof *p, const uint8_t *in, size_t n)
{
    uint8_t piece[PROOF_RECORD_MAX + 8];
    size_t used, len;
    const void *out;

    proof_take(p, in, n, &used, NULL);
    out = proof_output(p, &len);
    memcpy(piece, out, len);
    if (proof_is_complete(p)) {
        memcpy(piece + len, s->tail, strlen(s->tail));
        len += strlen(s->tail);
    }
    server_send(s, piece, len);
}

static void *serve(void *arg)
{
    struct server *s = arg;
    struct proof *p = secured_listener(s->secret, STORE_PURPOSE);
    uint8_t in[PROOF_RECORD_MAX];
    ssize_t n;

    while (s->n_sent < s->most && (n = recv(s->fd, in, sizeof in, 0)) > 0)
        if (s->echoes)
            server_send(s, in, (size_t)n);
        else
            server_answer(s, p, in, (size_t)n);
    shutdown(s->fd, SHUT_WR);
    while (recv(s->fd, in, sizeof in, 0) > 0)
        ;
    proof_close(p);
    return NULL;
}

static tenrec_status exchange_on(int fd, tenrec_error *err)
{
    struct security *ours = secured(OURS, PLAIN_NONE);
    struct store_conn c = { .fd = fd };
    tenrec_status st = store_proof_exchange(&c, ours->secret, clock_deadline_ms(TEST_MS), err);

    security_drop(ours);
    return st;
}

static tenrec_status exchange_with(struct server *s, tenrec_error *err)
{
    int pair[2];
    pthread_t thread;
    tenrec_status st;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    s->fd = pair[1];
    assert_int_equal(pthread_create(&thread, NULL, serve, s), 0);
    st = exchange_on(pair[0], err);
    close(pair[0]);
    pthread_join(thread, NULL);
    close(pair[1]);
    return st;
}

static struct server honest(void)
{
    return (struct server){ .secret = OURS, .most = SIZE_MAX, .tail = "" };
}

TEST(client_refuses_a_proof_that_is_cut_at_any_byte)
{
    struct server whole = honest();
    tenrec_error err;

    assert_status(exchange_with(&whole, &err), &err);
    for (size_t most = 1; most < whole.n_sent; most++) {
        struct server cut = honest();
        cut.most = most;
        assert_int_equal(exchange_with(&cut, &err), TENREC_EPEER_LOST);
        assert_text_has(err.text, "the store closed the connection");
    }
}

TEST(client_refuses_another_secret)
{
    struct server other = honest();
    tenrec_error err;

    other.secret = OTHER;
    assert_int_equal(exchange_with(&other, &err), TENREC_EPERM);
    assert_text_has(err.text, "another group secret");
}

TEST(client_refuses_its_own_bytes)
{
    struct server mirror = honest();
    tenrec_error err;

    mirror.echoes = true;
    assert_int_equal(exchange_with(&mirror, &err), TENREC_EPERM);
}

/* The byte comes in the same piece as the end of the proof. */
TEST(client_refuses_bytes_behind_the_proof)
{
    struct server hasty = honest();
    tenrec_error err;

    hasty.tail = "x";
    assert_int_equal(exchange_with(&hasty, &err), TENREC_EPERM);
    assert_text_has(err.text, "behind its proof");
}

/* What a server sent before, or what is no proof at all. */
static tenrec_status exchange_with_bytes(const void *data, size_t len, tenrec_error *err)
{
    int pair[2];
    tenrec_status st;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(send(pair[1], data, len, MSG_NOSIGNAL), len);
    st = exchange_on(pair[0], err);
    close(pair[0]);
    close(pair[1]);
    return st;
}

TEST(client_refuses_a_replayed_proof)
{
    struct server whole = honest();
    tenrec_error err;

    assert_status(exchange_with(&whole, &err), &err);
    assert_int_equal(exchange_with_bytes(whole.sent, whole.n_sent, &err), TENREC_EPERM);
}

TEST(client_refuses_what_is_no_proof)
{
    static const char *const bad[] = { "220 mail.example ESMTP\r\n", "\xff\xff\xff\xff",
                                       "TNRP\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff" };
    tenrec_error err;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(exchange_with_bytes(bad[i], strlen(bad[i]), &err), TENREC_EPERM);
        assert_text_has(err.text, "speaks no proof");
    }
}

struct dialled {
    struct store_client client;
    atomic_bool ended;
    tenrec_status st;
    tenrec_error err;
};

static void *call_until_cut(void *arg)
{
    struct dialled *d = arg;
    struct store_call c;

    d->st = store_call_begin(&c, &d->client, CLOCK_NEVER, &d->err);
    d->st = store_call_end(&c, d->st);
    atomic_store(&d->ended, true);
    return NULL;
}

/* The kernel accepts for a store that hangs, and no process answers the HELLO. */
TEST(client_proof_ends_when_cut_by_another_thread)
{
    struct dialled d = { .client = { .lock = PTHREAD_MUTEX_INITIALIZER } };
    struct store_dial *const dial = &d.client.dial;
    pthread_t thread;
    uint16_t port;
    const int listener = listen_here(&port);

    d.client.security = secured(OURS, PLAIN_NONE);
    dial->security = d.client.security;
    dial->dialect = STORE_DIALECT_2_2;
    assert_status(resolve_host("127.0.0.1", port, clock_deadline_ms(TEST_MS), dial->address,
                               &dial->n_addresses, &d.err),
                  &d.err);
    assert_int_equal(pthread_create(&thread, NULL, call_until_cut, &d), 0);
    assert_becomes((store_client_cut(&d.client), atomic_load(&d.ended)));
    pthread_join(thread, NULL);
    assert_int_equal(d.st, TENREC_EPEER_LOST);
    store_client_finish(&d.client);
    close(listener);
}
