/* SPDX-License-Identifier: Apache-2.0 */
/* store_gate_test.c - what the bytes before a session may be: a gate without a socket, and the
 * client's side of the proof. */
#include "../support/secured.h"

#include "core/base/clock.h"
#include "group/store/store_gate.h"

#define OURS "the secret of this group"
#define OTHER "the secret of another group"
#define REQUEST "\0\xce\xf7\x85\x3c" /* VALIDATE */
#define SECOND_NS UINT64_C(1000000000)

static struct security *security;
static struct {
    uint8_t data[4 * PROOF_RECORD_MAX];
    size_t len;
} answers; /* of the gate */
static enum security_plain asked_plain;
static tenrec_status plain_answer;

static void gate_wrote(void *arg, const void *data, size_t len)
{
    (void)arg;
    assert_true(len <= sizeof answers.data - answers.len);
    memcpy(answers.data + answers.len, data, len);
    answers.len += len;
}

static tenrec_status gate_asked(void *arg, enum security_plain plain, tenrec_error *err)
{
    (void)arg;
    asked_plain = plain;
    return plain_answer == TENREC_OK ? TENREC_OK : tenrec_fail(err, plain_answer, "not ours");
}

static const struct store_gate_ops ops = { gate_wrote, gate_asked };

static void begin(void)
{
    answers.len = 0;
    plain_answer = TENREC_EPERM;
    security = secured(OURS, PLAIN_SAME_USER);
}

static void end(void)
{
    security_drop(security);
}

static struct store_gate *gate(void)
{
    struct store_gate *g = store_gate_new(security, &ops, NULL);

    assert_non_null(g);
    return g;
}

/* All that a client sent, in the order of its records. */
static struct {
    uint8_t data[4 * PROOF_RECORD_MAX];
    size_t len, hello_len;
} sent;

/* Gives the gate `step` bytes at a time. */
static tenrec_status gate_feed(struct store_gate *g, const uint8_t *data, size_t len, size_t step,
                               tenrec_error *err)
{
    tenrec_status st = TENREC_OK;
    size_t used;

    for (size_t at = 0; st == TENREC_OK && at < len; at += step) {
        const size_t n = len - at < step ? len - at : step;
        assert_false(store_gate_is_open(g));
        st = store_gate_take(g, data + at, n, &used, err);
        if (st == TENREC_OK)
            assert_int_equal(used, n);
    }
    return st;
}

/* Runs the client's exchange with the gate to its end. Returns the gate's status, or the client's
 * if that is an error. */
static tenrec_status exchange(struct store_gate *g, struct proof *client, size_t step,
                              tenrec_error *err)
{
    tenrec_status st = TENREC_OK;
    size_t len, used;

    sent.len = 0;
    for (int round = 0; st == TENREC_OK && round < 2; round++) {
        const void *out = proof_output(client, &len);
        memcpy(sent.data + sent.len, out, len);
        st = gate_feed(g, sent.data + sent.len, len, step, err);
        sent.len += len;
        sent.hello_len = round ? sent.hello_len : len;
        if (st != TENREC_OK)
            return st;
        st = proof_take(client, answers.data, answers.len, &used, err);
        answers.len = 0;
    }
    return st;
}

TEST_WITH(gate_opens_for_a_member_however_its_bytes_are_cut, begin, end)
{
    static const size_t step[] = { 1, 3, 64, PROOF_RECORD_MAX };
    tenrec_error err;

    for (size_t i = 0; i < sizeof step / sizeof step[0]; i++) {
        struct store_gate *g = gate();
        struct proof *client = secured_client(OURS, STORE_PURPOSE);
        assert_status(exchange(g, client, step[i], &err), &err);
        assert_true(store_gate_is_open(g));
        assert_true(proof_is_complete(client));
        proof_close(client);
        store_gate_drop(g);
    }
}

/* A client may send its first request with its answer. */
TEST_WITH(gate_leaves_the_bytes_behind_the_proof_to_the_session, begin, end)
{
    struct store_gate *g = gate();
    struct proof *client = secured_client(OURS, STORE_PURPOSE);
    uint8_t whole[PROOF_RECORD_MAX + 5];
    size_t len, used;
    tenrec_error err;
    const void *out = proof_output(client, &len);

    assert_status(store_gate_take(g, out, len, &used, &err), &err);
    assert_status(proof_take(client, answers.data, answers.len, &used, &err), &err);
    out = proof_output(client, &len);
    memcpy(whole, out, len);
    memcpy(whole + len, REQUEST, 5);
    assert_status(store_gate_take(g, whole, len + 5, &used, &err), &err);
    assert_true(store_gate_is_open(g));
    assert_int_equal(used, len);
    proof_close(client);
    store_gate_drop(g);
}

TEST_WITH(gate_stays_shut_until_the_last_byte, begin, end)
{
    struct store_gate *g = gate();
    struct proof *client = secured_client(OURS, STORE_PURPOSE);
    size_t len, used;
    tenrec_error err;
    const uint8_t *out = proof_output(client, &len);

    assert_status(gate_feed(g, out, len, 1, &err), &err);
    assert_false(store_gate_is_open(g));
    assert_status(proof_take(client, answers.data, answers.len, &used, &err), &err);
    out = proof_output(client, &len);
    assert_status(gate_feed(g, out, len - 1, 1, &err), &err);
    assert_false(store_gate_is_open(g));
    proof_close(client);
    store_gate_drop(g);
}

TEST_WITH(gate_refuses_another_secret, begin, end)
{
    struct store_gate *g = gate();
    struct proof *client = secured_client(OTHER, STORE_PURPOSE);
    tenrec_error err;

    assert_int_equal(exchange(g, client, 64, &err), TENREC_EPERM);
    assert_text_has(err.text, "another group secret");
    assert_false(store_gate_is_open(g));
    assert_false(proof_is_complete(client));
    proof_close(client);
    store_gate_drop(g);
}

TEST_WITH(gate_refuses_a_proof_for_another_purpose, begin, end)
{
    struct store_gate *g = gate();
    struct proof *client = secured_client(OURS, "tensorpipe");
    tenrec_error err;

    assert_int_equal(exchange(g, client, 64, &err), TENREC_EPERM);
    assert_false(store_gate_is_open(g));
    proof_close(client);
    store_gate_drop(g);
}

TEST_WITH(gate_refuses_a_replayed_proof, begin, end)
{
    struct store_gate *g = gate(), *second = gate();
    struct proof *client = secured_client(OURS, STORE_PURPOSE);
    tenrec_error err;

    assert_status(exchange(g, client, 64, &err), &err);
    assert_status(gate_feed(second, sent.data, sent.hello_len, 64, &err), &err);
    assert_int_equal(
        gate_feed(second, sent.data + sent.hello_len, sent.len - sent.hello_len, 64, &err),
        TENREC_EPERM);
    assert_false(store_gate_is_open(second));
    proof_close(client);
    store_gate_drop(g);
    store_gate_drop(second);
}

/* The gate's own challenge, sent back as an answer. */
TEST_WITH(gate_refuses_its_own_bytes, begin, end)
{
    struct store_gate *g = gate();
    struct proof *client = secured_client(OURS, STORE_PURPOSE);
    uint8_t challenge[PROOF_RECORD_MAX];
    size_t len, challenge_len;
    tenrec_error err;
    const void *out = proof_output(client, &len);

    assert_status(gate_feed(g, out, len, len, &err), &err);
    challenge_len = answers.len;
    memcpy(challenge, answers.data, challenge_len);
    assert_int_not_equal(gate_feed(g, challenge, challenge_len, challenge_len, &err), TENREC_OK);
    assert_false(store_gate_is_open(g));
    proof_close(client);
    store_gate_drop(g);
}

TEST_WITH(gate_refuses_each_proof_with_a_changed_byte, begin, end)
{
    struct proof *client;
    struct store_gate *g;
    size_t hello_len = 1;
    tenrec_error err;

    for (size_t i = 0; i < hello_len; i++) {
        size_t used;
        g = gate();
        client = secured_client(OURS, STORE_PURPOSE);
        answers.len = 0;
        memcpy(sent.data, proof_output(client, &hello_len), hello_len);
        sent.data[i] ^= 0x10;
        if (store_gate_take(g, sent.data, hello_len, &used, &err) == TENREC_OK && answers.len) {
            tenrec_status st = proof_take(client, answers.data, answers.len, &used, &err);
            assert_int_not_equal(st, TENREC_OK); /* the gate's mac covers what it read */
        }
        assert_false(store_gate_is_open(g));
        proof_close(client);
        store_gate_drop(g);
    }
}

TEST_WITH(gate_lets_a_plain_client_in_as_its_connection_is_judged, begin, end)
{
    struct store_gate *g = gate();
    size_t used = 77;
    tenrec_error err;

    plain_answer = TENREC_OK;
    assert_status(store_gate_take(g, REQUEST, 5, &used, &err), &err);
    assert_int_equal(asked_plain, PLAIN_SAME_USER);
    assert_true(store_gate_is_open(g));
    assert_int_equal(used, 0); /* all of it is the session's */
    assert_int_equal(answers.len, 0);
    store_gate_drop(g);
}

/* A single byte is a whole request of torch 1.13. */
TEST_WITH(gate_tells_a_refused_plain_client_that_a_proof_is_asked, begin, end)
{
    struct store_gate *g = gate();
    size_t used;
    tenrec_error err;

    assert_int_equal(store_gate_take(g, "\6", 1, &used, &err), TENREC_EPERM);
    assert_string_equal(err.text, "not ours");
    assert_false(store_gate_is_open(g));
    assert_true(answers.len >= 4 && proof_begins(answers.data, answers.len));
    store_gate_drop(g);
}

TEST_WITH(gate_refuses_what_begins_like_a_proof_and_is_none, begin, end)
{
    struct store_gate *g = gate();
    size_t used;
    tenrec_error err;

    plain_answer = TENREC_OK;
    assert_status(store_gate_take(g, "TNR", 3, &used, &err), &err);
    assert_int_equal(store_gate_take(g, "XXXXXXXXXXXXXXXX", 16, &used, &err), TENREC_EPROTOCOL);
    assert_false(store_gate_is_open(g));
    store_gate_drop(g);
}

TEST_WITH(gate_is_late_after_ten_seconds_until_it_opens, begin, end)
{
    const uint64_t now_ns = clock_now_ns();
    struct store_gate *g = gate();
    struct proof *client = secured_client(OURS, STORE_PURPOSE);
    tenrec_error err;

    assert_false(store_gate_is_late(g, now_ns + 9 * SECOND_NS));
    assert_true(store_gate_is_late(g, now_ns + 60 * SECOND_NS));
    assert_status(exchange(g, client, 64, &err), &err);
    assert_false(store_gate_is_late(g, now_ns + 60 * SECOND_NS));
    proof_close(client);
    store_gate_drop(g);
}
