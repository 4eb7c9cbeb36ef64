/* SPDX-License-Identifier: Apache-2.0 */
/* ring_session_test.c - mode mtls over rings: members and strangers by hand at the Unix socket,
 * where TLS ends with the proof. */
#include "../proof/secrets.h"

#include "../../support/functions.h"
#include "../../support/tls_site.h"
#include "core/backend/backend.h"
#include "raw.h"
#include "rpc/future/worker.h"
#include "security/tls/tls.h"
#include "transport/ring/ring.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

static struct cluster group;
static uint64_t hellos, refused;

static void configure(struct tenrec_config *config, int rank)
{
    const struct {
        const char *key, *value;
    } set[] = {
        { "security.mtls.ca", tls_site_path("ours.pem") },
        { "security.mtls.cert", tls_site_path("ours-leaf.pem") },
        { "security.mtls.key", tls_site_path("ours-leaf.key") },
        { "security.mtls.names", "[worker0]" },
        { "security.mode", "mtls" },
    };
    tenrec_error err;

    (void)rank;
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        assert_status(tenrec_config_set(config, set[i].key, set[i].value, &err), &err);
}

static void open_group(void)
{
    tls_site_make();
    secrets_group(&group, NO_SECRET, NO_SECRET);
    functions_must_call_add(group.worker[1], "worker0");
    assert_true(secrets_tells(group.worker[1], "peer.0.transport", "tenrec_ring"));
    hellos = secrets_counter(group.worker[0], "hellos");
    refused = secrets_counter(group.worker[0], "proofs_refused");
}

/* After each case: no hello of a peer by hand was parsed, and the members have not noticed. */
static void close_group(void)
{
    assert_int_equal(secrets_counter(group.worker[0], "hellos"), hellos);
    functions_must_call_add(group.worker[1], "worker0");
    functions_must_call_add(group.worker[0], "worker1");
    cluster_close(&group, TENREC_GRACEFUL);
    tls_site_remove();
}

/* ---- a dialler by hand ---- */

/* Its bytes go to the socket as this test likes: the session has none. */
struct hand {
    int fd;
    struct tls_session *tls; /* owns */
    struct proof *proof;     /* owns */
    unsigned char out[8192]; /* to send */
    size_t len;
    size_t sent, limit; /* bytes in all, and after how many it ends */
};

static void hand_open(struct hand *h, const char *authority)
{
    struct security *s = tls_site_certificates(authority, "ours", NULL, PLAIN_NONE);
    tenrec_error err;

    *h = (struct hand){ .limit = SIZE_MAX };
    h->fd = by_hand_connect(chain_address(group.worker[0]->chain));
    assert_status(tls_session_open(s->tls, -1, TLS_DIALLER, &h->tls, &err), &err);
    security_drop(s);
}

static void hand_close(struct hand *h)
{
    proof_close(h->proof);
    tls_session_close(h->tls);
    close(h->fd);
}

/* Has what the session wants to send ready. */
static void hand_collect(struct hand *h)
{
    size_t len;
    const void *bytes = tls_session_output(h->tls, &len);

    assert_true(h->len + len <= sizeof h->out);
    memcpy(h->out + h->len, bytes, len);
    h->len += len;
}

/* Returns false if the dialler ends here. */
static bool hand_send(struct hand *h)
{
    const size_t left = h->limit - h->sent, n = h->len < left ? h->len : left;

    if (n)
        raw_send(h->fd, h->out, n);
    h->sent += n;
    h->len = 0;
    return h->sent < h->limit;
}

static bool hand_receive(struct hand *h)
{
    char buf[4096];
    ssize_t n = recv(h->fd, buf, sizeof buf, 0);
    tenrec_error err;

    if (n <= 0)
        return false;
    assert_status(tls_session_feed(h->tls, buf, (size_t)n, &err), &err);
    return true;
}

/* Returns false if one side has ended. */
static bool hand_shake(struct hand *h)
{
    tenrec_status st;
    tenrec_error err;

    while ((st = tls_session_shake(h->tls, &err)) == TENREC_EAGAIN) {
        hand_collect(h);
        if (!hand_send(h) || !hand_receive(h))
            return false;
    }
    assert_status(st, &err);
    hand_collect(h);
    return true;
}

static void hand_begin_proof(struct hand *h)
{
    uint8_t binding[TLS_BINDING_BYTES];
    struct proof_terms terms = { .side = PROOF_DIALLER,
                                 .purpose = "tensorpipe",
                                 .me = secrets_party(group.worker[1]),
                                 .peer = secrets_party(group.worker[0]),
                                 .binding = binding };
    tenrec_error err;

    assert_status(tls_session_binding(h->tls, binding, &err), &err);
    assert_status(secret_new(binding, sizeof binding, &terms.secret, &err), &err);
    assert_status(proof_open(&terms, &h->proof, &err), &err);
    secret_drop(terms.secret);
}

/* Encrypts the next record of the proof, and so many bytes behind it. */
static void hand_say(struct hand *h, size_t more)
{
    unsigned char text[PROOF_RECORD_MAX + 8] = { 0 };
    struct iovec iov = { .iov_base = text };
    size_t len;
    const void *record = proof_output(h->proof, &len);

    memcpy(text, record, len);
    iov.iov_len = len + more;
    assert_int_equal(tls_session_write(h->tls, &iov, 1), (ssize_t)iov.iov_len);
    hand_collect(h);
}

/* Takes the next record of the other side. */
static bool hand_hear(struct hand *h)
{
    unsigned char record[PROOF_RECORD_MAX];
    struct iovec iov = { record, sizeof record };
    ssize_t n;
    size_t used;
    tenrec_error err;

    while ((n = tls_session_read(h->tls, &iov, 1)) == -EAGAIN)
        if (!hand_receive(h))
            return false;
    if (n <= 0)
        return false;
    assert_status(proof_take(h->proof, record, (size_t)n, &used, &err), &err);
    assert_int_equal(used, n);
    return true;
}

/* Up to the last record of the dialler, which is ready to be sent. */
static bool hand_prove(struct hand *h)
{
    if (!hand_shake(h))
        return false;
    hand_begin_proof(h);
    hand_say(h, 0);
    return hand_send(h) && hand_hear(h);
}

/* ---- members ---- */

TEST_WITH(ring_socket_is_plain_behind_the_proof, open_group, close_group)
{
    const char setup[24] = "tenring2 without memory";
    unsigned char answer = 0;
    struct hand h;

    hand_open(&h, "ours");
    assert_true(hand_prove(&h));
    hand_say(&h, 0);
    assert_true(hand_send(&h) && hand_hear(&h));
    assert_true(proof_is_complete(h.proof));
    raw_send(h.fd, setup, sizeof setup);
    assert_true(raw_recv(h.fd, &answer, 1));
    assert_int_equal(answer, RING_MALFORMED);
    assert_int_equal(secrets_counter(group.worker[0], "proofs_refused"), refused);
    hand_close(&h);
}

/* Within its last record, and in another one: the session has read them, and so they would be lost
 * to what follows. */
TEST_WITH(member_is_refused_when_bytes_follow_its_proof, open_group, close_group)
{
    for (unsigned more = 0; more < 2; more++) {
        char zero = 0;
        struct iovec iov = { &zero, more };
        struct hand h;

        hand_open(&h, "ours");
        assert_true(hand_prove(&h));
        hand_say(&h, 1 - more);
        if (more)
            assert_int_equal(tls_session_write(h.tls, &iov, 1), 1);
        hand_collect(&h);
        hand_send(&h);
        assert_true(raw_closed(h.fd));
        assert_becomes(secrets_counter(group.worker[0], "proofs_refused") == refused + more + 1);
        hand_close(&h);
    }
}

/* ---- strangers ---- */

TEST_WITH(stranger_is_refused_when_another_authority_has_signed, open_group, close_group)
{
    struct hand h;

    hand_open(&h, "theirs");
    assert_false(hand_prove(&h));
    assert_true(raw_closed(h.fd));
    assert_becomes(secrets_counter(group.worker[0], "proofs_refused") == refused + 1);
    hand_close(&h);
}

/* In the handshake, the proof, and between both. */
TEST_WITH(strangers_disturb_nobody_when_they_end_at_any_byte, open_group, close_group)
{
    struct hand h;
    size_t all;

    hand_open(&h, "ours");
    assert_true(hand_prove(&h));
    hand_say(&h, 0);
    all = h.sent + h.len;
    hand_close(&h);
    assert_true(all > 1000);
    for (size_t limit = 1; limit < all; limit += 11) {
        hand_open(&h, "ours");
        h.limit = limit;
        if (hand_prove(&h)) {
            hand_say(&h, 0);
            assert_false(hand_send(&h));
        }
        hand_close(&h);
        if (limit % 5 == 0)
            functions_must_call_add(group.worker[1], "worker0");
    }
}

int main(void)
{
    int failed;

    cluster_use("tensorpipe");
    secrets_make();
    secrets_configure = configure;
    failed = testing_run(NULL, NULL);
    secrets_remove();
    return failed;
}
