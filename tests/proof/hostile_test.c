/* SPDX-License-Identifier: Apache-2.0 */
/* hostile_test.c - proofs by a side that means ill, or has the wrong secret. */
#include "pair.h"
#include "security/proof/proof_record.h"

/* The bytes of a whole exchange, and which side sent each record. */
struct capture {
    uint8_t data[4][PROOF_RECORD_MAX];
    size_t len[4];
};

static void take_output(struct pair *x, int side, uint8_t *ret, size_t *ret_len)
{
    const void *out = proof_output(x->side[side], ret_len);

    memcpy(ret, out, *ret_len);
}

static void capture_make(struct capture *c)
{
    struct pair x;

    pair_open(&x, 7, 7);
    for (int i = 0; i < 4; i++) {
        take_output(&x, i % 2, c->data[i], &c->len[i]);
        assert_true(c->len[i] > 0);
        assert_true(pair_give(&x, !(i % 2), c->data[i], c->len[i]));
    }
    assert_true(proof_is_complete(x.side[DIALLER]) && proof_is_complete(x.side[LISTENER]));
    pair_close(&x);
}

static bool has_text(const uint8_t *data, size_t len, const char *text)
{
    return memmem(data, len, text, strlen(text)) != NULL;
}

/* Both sides with the usual terms but for what `change` does to the dialler's. */
static void pair_open_changed(struct pair *x, void (*change)(struct proof_terms *))
{
    struct secret *s = pair_secret(7);
    struct proof_terms dialler = pair_dialler(s), listener = pair_listener(s);

    change(&dialler);
    pair_open_with(x, &dialler, &listener);
    secret_drop(s);
}

static void assert_both_refuse(struct pair *x, const char *dialler_text, const char *listener_text)
{
    assert_int_equal(x->status[DIALLER], TENREC_EPERM);
    assert_int_equal(x->status[LISTENER], TENREC_EPERM);
    assert_text_has(x->err[DIALLER].text, dialler_text);
    assert_text_has(x->err[LISTENER].text, listener_text);
    assert_false(proof_is_complete(x->side[DIALLER]) || proof_may_send(x->side[DIALLER]));
    assert_false(proof_is_complete(x->side[LISTENER]) || proof_may_send(x->side[LISTENER]));
}

static void without_secret(struct proof_terms *t)
{
    t->secret = NULL;
}

TEST(hostile_dialler_without_a_secret_is_told_which_kind_is_asked)
{
    struct pair x;

    pair_open_changed(&x, without_secret);
    pair_run(&x, SIZE_MAX);
    assert_both_refuse(&x,
                       "asks for a group secret; none was given: --secret-file or "
                       "TENREC_SECRET_FILE",
                       "gave no group secret");
    pair_close(&x);
}

TEST(hostile_listener_without_a_secret_is_refused)
{
    struct secret *s = pair_secret(7);
    const struct proof_terms dialler = pair_dialler(s), listener = pair_listener(NULL);
    struct pair x;

    pair_open_with(&x, &dialler, &listener);
    pair_run(&x, SIZE_MAX);
    assert_both_refuse(&x, "has no group secret", "asks for a group secret; none was given");
    pair_close(&x);
    secret_drop(s);
}

static void another_purpose(struct proof_terms *t)
{
    t->purpose = STORE_PURPOSE;
}

TEST(hostile_proof_for_another_purpose_is_refused)
{
    struct pair x;

    pair_open_changed(&x, another_purpose);
    pair_run(&x, SIZE_MAX);
    assert_both_refuse(&x, "another purpose", "another purpose");
    pair_close(&x);
}

static void another_name(struct proof_terms *t)
{
    t->peer.name = "worker2";
}

static void another_rank(struct proof_terms *t)
{
    t->peer.rank = 2;
}

static void another_incarnation(struct proof_terms *t)
{
    t->peer.incarnation = 9;
}

/* The record of the wanted worker has the address of an attacker, who passes the proof on. */
static void another_address(struct proof_terms *t)
{
    t->peer.address = "uv://127.0.0.1:6666";
}

TEST(hostile_relay_to_another_worker_is_refused_by_both)
{
    static void (*const changes[])(struct proof_terms *) = { another_name, another_rank,
                                                             another_incarnation, another_address };

    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct pair x;
        pair_open_changed(&x, changes[i]);
        pair_run(&x, 1);
        assert_both_refuse(&x, "another worker listens", "another worker listens");
        pair_close(&x);
    }
}

/* A process on the path can reach a tool's listener as well as a worker's. */
TEST(hostile_relay_to_a_listener_without_a_name_is_refused_by_both)
{
    struct secret *s = pair_secret(7);
    const struct proof_terms dialler = pair_dialler(s);
    struct proof_terms listener = pair_listener(s);
    struct pair x;

    listener.me = (struct proof_party){ .rank = -1, .name = "", .address = "" };
    pair_open_with(&x, &dialler, &listener);
    secret_drop(s);
    pair_run(&x, SIZE_MAX);
    assert_both_refuse(&x, "another worker listens", "another worker");
    pair_close(&x);
}

static void any_party(struct proof_terms *t)
{
    t->peer = (struct proof_party){ .rank = -1, .name = "worker0" };
}

static void nobody_named(struct proof_terms *t)
{
    t->peer = (struct proof_party){ .rank = 5, .incarnation = 5, .name = "" };
}

TEST(proof_is_complete_when_the_dialler_knows_less)
{
    static void (*const changes[])(struct proof_terms *) = { any_party, nobody_named };

    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct pair x;
        pair_open_changed(&x, changes[i]);
        pair_run(&x, SIZE_MAX);
        assert_true(proof_is_complete(x.side[DIALLER]));
        assert_int_equal(proof_peer(x.side[DIALLER])->incarnation, 10);
        pair_close(&x);
    }
}

/* An attacker repeats all that a dialler once said. */
TEST(hostile_replay_of_a_dialler_is_refused)
{
    struct capture c;
    struct pair x;

    capture_make(&c);
    pair_open(&x, 7, 7);
    pair_give(&x, LISTENER, c.data[0], c.len[0]);
    assert_int_equal(x.status[LISTENER], TENREC_OK);
    pair_give(&x, LISTENER, c.data[2], c.len[2]);
    assert_int_equal(x.status[LISTENER], TENREC_EPERM);
    assert_false(proof_is_complete(x.side[LISTENER]));
    pair_close(&x);
}

TEST(hostile_replay_of_a_listener_is_refused)
{
    struct capture c;
    struct pair x;

    capture_make(&c);
    pair_open(&x, 7, 7);
    pair_give(&x, DIALLER, c.data[1], c.len[1]);
    assert_int_equal(x.status[DIALLER], TENREC_EPERM);
    assert_false(proof_may_send(x.side[DIALLER]));
    pair_close(&x);
}

/* The acceptance of an earlier exchange, behind a challenge that is good. */
TEST(hostile_replay_of_an_acceptance_is_refused)
{
    struct capture c;
    struct pair x;

    capture_make(&c);
    pair_open(&x, 7, 7);
    pair_carry(&x, DIALLER, SIZE_MAX);
    pair_carry(&x, LISTENER, SIZE_MAX);
    assert_true(proof_may_send(x.side[DIALLER]));
    pair_give(&x, DIALLER, c.data[3], c.len[3]);
    assert_int_equal(x.status[DIALLER], TENREC_EPERM);
    assert_false(proof_may_send(x.side[DIALLER]) || proof_is_complete(x.side[DIALLER]));
    pair_close(&x);
}

TEST(hostile_reflection_is_refused)
{
    uint8_t data[PROOF_RECORD_MAX], hello[PROOF_RECORD_MAX];
    struct proof_record r;
    struct pair x;
    tenrec_error err;
    size_t len;

    /* Its own hello comes back. */
    pair_open(&x, 7, 7);
    take_output(&x, DIALLER, hello, &len);
    pair_give(&x, DIALLER, hello, len);
    assert_int_equal(x.status[DIALLER], TENREC_EPROTOCOL);
    pair_close(&x);

    /* A challenge with its own nonce. */
    pair_open(&x, 7, 7);
    take_output(&x, DIALLER, hello, &len);
    assert_status(proof_record_unpack(hello, len, &r, &err), &err);
    memcpy(data, r.hello.nonce, sizeof r.hello.nonce);
    memset(&r, 0, sizeof r);
    r.kind = PROOF_CHALLENGE;
    memcpy(r.nonce, data, sizeof r.nonce);
    len = proof_record_pack(&r, data);
    memset(data + len - CRYPTO_MAC_BYTES, 0, CRYPTO_MAC_BYTES);
    pair_give(&x, DIALLER, data, len);
    assert_int_equal(x.status[DIALLER], TENREC_EPROTOCOL);
    assert_text_has(x.err[DIALLER].text, "our own nonce");
    pair_close(&x);
}

/* The mac of the listener as an answer to it. */
TEST(hostile_answer_of_the_listeners_own_mac_is_refused)
{
    const struct proof_record answer = { .kind = PROOF_ANSWER };
    uint8_t challenge[PROOF_RECORD_MAX], data[PROOF_RECORD_MAX];
    struct pair x;
    size_t len, n;

    pair_open(&x, 7, 7);
    pair_carry(&x, DIALLER, SIZE_MAX);
    take_output(&x, LISTENER, challenge, &n);
    len = proof_record_pack(&answer, data);
    memcpy(data + len - CRYPTO_MAC_BYTES, challenge + n - CRYPTO_MAC_BYTES, CRYPTO_MAC_BYTES);
    pair_give(&x, LISTENER, data, len);
    assert_int_equal(x.status[LISTENER], TENREC_EPERM);
    pair_close(&x);
}

/* Flips each bit of each record on its way. A side may believe in a proof only after it has seen
 * that all records before it arrived as they were sent. */
TEST(hostile_change_of_any_byte_is_refused)
{
    struct capture c;

    capture_make(&c);
    for (int record = 0; record < 4; record++) {
        for (size_t at = 0; at < c.len[record]; at++) {
            struct pair x;
            pair_open(&x, 7, 7);
            for (int i = 0; i < 4; i++) {
                uint8_t data[PROOF_RECORD_MAX];
                size_t len;
                take_output(&x, i % 2, data, &len);
                if (i == record && at < len)
                    data[at] ^= (uint8_t)(1 << (at + (size_t)i) % 8);
                if (x.status[!(i % 2)] == TENREC_OK && len > 0)
                    pair_give(&x, !(i % 2), data, len);
            }
            assert_false(proof_is_complete(x.side[DIALLER]));
            assert_int_equal(proof_is_complete(x.side[LISTENER]), record == 3);
            pair_close(&x);
        }
    }
}

TEST(hostile_cut_at_any_byte_completes_nothing)
{
    struct capture c;

    capture_make(&c);
    for (size_t at = 0; at < c.len[0]; at++) {
        struct pair x;
        size_t len;
        pair_open(&x, 7, 7);
        assert_true(pair_give(&x, LISTENER, c.data[0], at));
        assert_int_equal(x.status[LISTENER], TENREC_OK);
        proof_output(x.side[LISTENER], &len);
        assert_int_equal(len, 0);
        assert_false(proof_is_complete(x.side[LISTENER]));
        pair_close(&x);
    }
    for (size_t at = 0; at < c.len[2]; at++) {
        struct pair x;
        uint8_t data[PROOF_RECORD_MAX];
        size_t len;
        pair_open(&x, 7, 7);
        pair_carry(&x, DIALLER, SIZE_MAX);
        pair_carry(&x, LISTENER, SIZE_MAX);
        take_output(&x, DIALLER, data, &len);
        pair_give(&x, LISTENER, data, at);
        assert_int_equal(x.status[LISTENER], TENREC_OK);
        assert_false(proof_is_complete(x.side[LISTENER]));
        pair_close(&x);
    }
}

TEST(hostile_plain_bytes_are_no_proof_and_get_no_answer)
{
    static const char *const texts[] = { "GET / HTTP/1.1\r\n", "\x16\x03\x01", "T", "TNR", "TNRX" };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct pair x;
        size_t len;
        const bool prefix = strncmp("TNRP", texts[i], strlen(texts[i])) == 0;
        pair_open(&x, 7, 7);
        pair_give(&x, LISTENER, texts[i], strlen(texts[i]));
        assert_int_equal(x.status[LISTENER], prefix ? TENREC_OK : TENREC_EPROTOCOL);
        proof_output(x.side[LISTENER], &len);
        assert_int_equal(len, 0);
        pair_close(&x);
    }
}

TEST(hostile_peer_gets_the_same_error_for_all_that_follows)
{
    struct capture c;
    struct pair x;
    size_t len;

    capture_make(&c);
    pair_open(&x, 7, 7);
    pair_give(&x, LISTENER, c.data[2], c.len[2]); /* an answer to nothing */
    assert_int_equal(x.status[LISTENER], TENREC_EPROTOCOL);
    proof_output(x.side[LISTENER], &len);
    assert_int_equal(len, PROOF_HEAD_LEN + 1);
    assert_false(pair_give(&x, LISTENER, c.data[0], c.len[0]));
    assert_int_equal(x.status[LISTENER], TENREC_EPROTOCOL);
    assert_text_has(x.err[LISTENER].text, "out of order");
    proof_output(x.side[LISTENER], &len);
    assert_int_equal(len, 0);
    pair_close(&x);
}

/* A hello in two parts, the second with more bytes behind it than any record has. */
TEST(proof_leaves_the_bytes_behind_a_record_in_two_parts)
{
    static uint8_t rest[8 * PROOF_RECORD_MAX];
    struct capture c;

    capture_make(&c);
    for (size_t cut = 1; cut < c.len[0]; cut++) {
        struct pair x;
        size_t used;

        pair_open(&x, 7, 7);
        assert_int_equal(proof_take(x.side[LISTENER], c.data[0], cut, &used, NULL), TENREC_OK);
        assert_int_equal(used, cut);
        memset(rest, 'n', sizeof rest);
        memcpy(rest, c.data[0] + cut, c.len[0] - cut);
        /* What follows is no record: as many bytes as show that. */
        assert_int_equal(proof_take(x.side[LISTENER], rest, sizeof rest, &used, NULL),
                         TENREC_EPROTOCOL);
        assert_true(used <= c.len[0] - cut + PROOF_HEAD_LEN);
        pair_close(&x);
    }
}

TEST(proof_leaves_the_bytes_behind_it)
{
    uint8_t data[PROOF_RECORD_MAX + 6];
    struct pair x;
    size_t len, used;

    pair_open(&x, 7, 7);
    pair_carry(&x, DIALLER, SIZE_MAX);
    pair_carry(&x, LISTENER, SIZE_MAX);
    take_output(&x, DIALLER, data, &len);
    memcpy(data + len, "frames", 6);
    assert_int_equal(proof_take(x.side[LISTENER], data, len + 6, &used, NULL), TENREC_OK);
    assert_int_equal(used, len);
    assert_true(proof_is_complete(x.side[LISTENER]));
    assert_int_equal(proof_take(x.side[LISTENER], data, len, &used, NULL), TENREC_OK);
    assert_int_equal(used, 0); /* one exchange, no second */
    pair_close(&x);
}

TEST(proof_tells_a_stranger_no_name)
{
    struct capture c;
    struct pair x;
    uint8_t data[PROOF_RECORD_MAX];
    size_t len;

    capture_make(&c);
    assert_true(has_text(c.data[0], c.len[0], "worker0"));
    assert_false(has_text(c.data[1], c.len[1], "worker0"));
    assert_true(has_text(c.data[3], c.len[3], "worker0"));
    /* Nor by trial: the challenge to a dialler that wants another worker looks the same. */
    pair_open_changed(&x, another_name);
    pair_carry(&x, DIALLER, SIZE_MAX);
    take_output(&x, LISTENER, data, &len);
    assert_int_equal(x.status[LISTENER], TENREC_OK);
    assert_int_equal(len, c.len[1]);
    assert_memory_equal(data, c.data[1], PROOF_HEAD_LEN);
    pair_close(&x);
}

TEST(proof_demand_tells_a_peer_what_it_lacks)
{
    struct pair x;

    pair_open(&x, 7, 7);
    proof_demand(x.side[LISTENER], SECURITY_SECRET);
    pair_carry(&x, LISTENER, SIZE_MAX);
    assert_int_equal(x.status[DIALLER], TENREC_EPERM);
    assert_text_has(x.err[DIALLER].text, "asks for a group secret");
    pair_close(&x);
}

TEST(proof_demand_names_the_mode)
{
    static const char *const text[] = { [SECURITY_SECRET] = "asks for a group secret",
                                        [SECURITY_TLS] = "in security mode 'tls'",
                                        [SECURITY_MTLS] = "in security mode 'mtls'" };

    for (size_t mode = SECURITY_SECRET; mode <= SECURITY_MTLS; mode++) {
        uint8_t data[PROOF_RECORD_MAX];
        size_t len;
        struct pair x;

        pair_open(&x, 7, 7);
        proof_demand(x.side[LISTENER], (enum security_mode)mode);
        take_output(&x, LISTENER, data, &len);
        assert_int_equal(len, PROOF_DEMAND_LEN);
        assert_int_equal(proof_demanded(data, len), mode);
        for (size_t n = 0; n < len; n++)
            assert_int_equal(proof_demanded(data, n), SECURITY_NONE);
        pair_give(&x, DIALLER, data, len);
        assert_int_equal(x.status[DIALLER], TENREC_EPERM);
        assert_text_has(x.err[DIALLER].text, text[mode]);
        pair_close(&x);
    }
}

TEST(proof_refuses_terms_that_fit_no_record)
{
    char long_text[300] = "";
    struct secret *s = pair_secret(7);
    struct proof_terms terms[] = { pair_dialler(s), pair_dialler(s), pair_dialler(s),
                                   pair_dialler(s), pair_dialler(s), pair_dialler(s) };
    struct proof *p = NULL;
    tenrec_error err;

    memset(long_text, 'a', sizeof long_text - 1);
    terms[0].me.name = long_text;
    terms[1].peer.address = long_text;
    terms[2].purpose = long_text;
    terms[3].purpose = "";
    terms[4].label_len = PROOF_LABEL_MAX + 1;
    terms[5].me.rank = -2;
    for (size_t i = 0; i < sizeof terms / sizeof terms[0]; i++)
        assert_int_equal(proof_open(&terms[i], &p, &err), TENREC_EINVAL);
    assert_null(p);
    proof_close(NULL);
    secret_drop(s);
}
