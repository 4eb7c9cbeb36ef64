/* SPDX-License-Identifier: Apache-2.0 */
/* hostile_proof_test.c - strangers at the port of a worker that asks for a proof of the group
 * secret: none reaches a parser behind the proof, and a healthy member's calls go on. */
#include "secrets.h"

#include "../../support/functions.h"
#include "core/backend/backend.h"
#include "raw.h"
#include "rpc/future/worker.h"
#include <unistd.h>

#define ANSWER_LEN (8 + 32)

static struct cluster group;
static struct tenrec_worker *victim, *member;
static uint64_t hellos;

static void open_group(void)
{
    secrets_group(&group, OUR_SECRET, OUR_SECRET);
    victim = group.worker[0];
    member = group.worker[1];
    functions_must_call_add(member, "worker0");
    hellos = secrets_counter(victim, "hellos");
}

/* After each case: nothing was parsed, and the member has not noticed. */
static void close_group(void)
{
    assert_int_equal(secrets_counter(victim, "hellos"), hellos);
    functions_must_call_add(member, "worker0");
    functions_must_call_add(victim, "worker1");
    cluster_close(&group, TENREC_GRACEFUL);
}

static struct proof_party no_party(void)
{
    return (struct proof_party){ TENREC_ANONYMOUS, 0, "stranger", "" };
}

static struct by_hand dial(enum secret_of which)
{
    const struct proof_party me = no_party();

    return by_hand_dial(which, &me, victim, 0);
}

/* The victim's last words, and the end. */
static void assert_refused(struct by_hand *h)
{
    unsigned char record[PROOF_RECORD_MAX];
    size_t len = by_hand_read(h, record);

    assert_true(record_refuses(record, len));
    assert_true(raw_closed(h->fd));
}

static void send_answer(struct by_hand *h, const unsigned char mac[32])
{
    unsigned char record[ANSWER_LEN] = { 'T', 'N', 'R', 'P', 1, 3, 32, 0 };

    memcpy(record + 8, mac, 32);
    raw_send(h->fd, record, sizeof record);
}

TEST_WITH(stranger_is_refused_when_it_gives_no_proof, open_group, close_group)
{
    struct by_hand h = dial(OTHER_SECRET);
    const uint64_t before = secrets_counter(victim, "proofs_refused");

    raw_frame(h.fd, raw_hello, sizeof raw_hello);
    assert_refused(&h);
    assert_becomes(secrets_counter(victim, "proofs_refused") == before + 1);
    by_hand_close(&h);
}

TEST_WITH(stranger_learns_that_a_secret_is_asked_for_when_it_has_none, open_group, close_group)
{
    struct by_hand h = dial(NO_SECRET);
    tenrec_error err;

    assert_int_equal(by_hand_prove(&h, &err), TENREC_EPERM);
    assert_text_has(err.text, "asks for a group secret");
    assert_text_has(err.text, "--secret-file");
    by_hand_close(&h);
}

TEST_WITH(stranger_is_refused_when_its_secret_is_another, open_group, close_group)
{
    unsigned char challenge[PROOF_RECORD_MAX];
    static const unsigned char guess[32] = "a guess";
    struct by_hand h = dial(OTHER_SECRET);

    by_hand_send(&h, SIZE_MAX);
    assert_true(by_hand_read(&h, challenge) > 0);
    send_answer(&h, guess);
    assert_refused(&h);
    by_hand_close(&h);
}

TEST_WITH(stranger_is_refused_when_it_reflects_the_challenge, open_group, close_group)
{
    unsigned char challenge[PROOF_RECORD_MAX];
    struct by_hand h = dial(OTHER_SECRET);
    size_t len;

    by_hand_send(&h, SIZE_MAX);
    len = by_hand_read(&h, challenge);
    assert_true(len > 32);
    send_answer(&h, challenge + len - 32);
    assert_refused(&h);
    by_hand_close(&h);
}

/* A member's own words on another connection. */
TEST_WITH(stranger_is_refused_when_it_replays_a_proof, open_group, close_group)
{
    unsigned char said[2 * PROOF_RECORD_MAX], record[PROOF_RECORD_MAX];
    struct by_hand honest = dial(OUR_SECRET), h = dial(NO_SECRET);
    size_t hello, answer;
    tenrec_error err;
    const void *out = proof_output(honest.proof, &hello);

    memcpy(said, out, hello);
    raw_send(honest.fd, said, hello);
    assert_status(by_hand_take(&honest, &err), &err);
    out = proof_output(honest.proof, &answer);
    memcpy(said + hello, out, answer);
    raw_send(honest.fd, said + hello, answer);
    assert_status(by_hand_take(&honest, &err), &err);
    assert_true(proof_is_complete(honest.proof));
    by_hand_close(&honest);

    raw_send(h.fd, said, hello);
    assert_true(by_hand_read(&h, record) > 0);
    raw_send(h.fd, said + hello, answer);
    assert_refused(&h);
    by_hand_close(&h);
}

TEST_WITH(dialler_is_refused_when_its_proof_is_for_another_worker, open_group, close_group)
{
    const struct proof_party me = secrets_party(member);
    struct proof_terms terms = { .side = PROOF_DIALLER,
                                 .secret = secrets_get(OUR_SECRET),
                                 .purpose = "tensorpipe",
                                 .me = me,
                                 .peer = me };
    struct by_hand h = dial(OUR_SECRET);
    tenrec_error err;

    proof_close(h.proof);
    assert_status(proof_open(&terms, &h.proof, &err), &err);
    assert_int_equal(by_hand_prove(&h, &err), TENREC_EPERM);
    assert_text_has(err.text, "another worker");
    by_hand_close(&h);
}

TEST_WITH(dialler_is_refused_when_its_proof_is_for_another_purpose, open_group, close_group)
{
    struct proof_terms terms = { .side = PROOF_DIALLER,
                                 .secret = secrets_get(OUR_SECRET),
                                 .purpose = STORE_PURPOSE,
                                 .me = no_party(),
                                 .peer = secrets_party(victim) };
    struct by_hand h = dial(OUR_SECRET);
    tenrec_error err;

    proof_close(h.proof);
    assert_status(proof_open(&terms, &h.proof, &err), &err);
    assert_int_equal(by_hand_prove(&h, &err), TENREC_EPERM);
    by_hand_close(&h);
}

/* A past life of a member, and a rank that no member has: both know the secret. */
TEST_WITH(dialler_is_refused_when_it_is_no_member_of_the_static_group, open_group, close_group)
{
    struct proof_party me = secrets_party(member);
    const uint64_t life = me.incarnation;

    for (int i = 0; i < 2; i++) {
        struct by_hand h;
        tenrec_error err;

        me.rank = i ? 7 : me.rank;
        me.incarnation = i ? life : life + 1;
        h = by_hand_dial(OUR_SECRET, &me, victim, 0);
        assert_int_equal(by_hand_prove(&h, &err), TENREC_ECONNECT);
        by_hand_close(&h);
    }
}

/* Frames in the place of the answer: nothing falls back to the plain protocol. */
TEST_WITH(dialler_is_refused_when_it_goes_on_without_proof, open_group, close_group)
{
    unsigned char challenge[PROOF_RECORD_MAX];
    struct by_hand h = dial(OUR_SECRET);

    by_hand_send(&h, SIZE_MAX);
    assert_true(by_hand_read(&h, challenge) > 0);
    raw_frame(h.fd, raw_hello, sizeof raw_hello);
    raw_frame(h.fd, raw_brochure, sizeof raw_brochure);
    assert_true(raw_closed(h.fd));
    by_hand_close(&h);
}

static void cut_at(size_t hello, size_t answer)
{
    struct by_hand h = dial(OUR_SECRET);
    size_t len;
    tenrec_error err;
    const unsigned char *out = proof_output(h.proof, &len);

    assert_true(hello <= len);
    raw_send(h.fd, out, hello);
    if (hello == len) {
        assert_status(by_hand_take(&h, &err), &err);
        out = proof_output(h.proof, &len);
        assert_int_equal(len, ANSWER_LEN);
        raw_send(h.fd, out, answer);
    }
    by_hand_close(&h);
}

TEST_WITH(proof_is_dropped_when_it_is_cut_at_any_byte, open_group, close_group)
{
    struct by_hand h = dial(OUR_SECRET);
    const uint64_t failed = secrets_counter(victim, "handshakes_failed");
    size_t hello, cuts = 1;

    proof_output(h.proof, &hello);
    by_hand_close(&h);
    for (size_t i = 0; i < hello; i++, cuts++)
        cut_at(i, 0);
    for (size_t i = 0; i < ANSWER_LEN; i++, cuts++)
        cut_at(hello, i);
    assert_becomes(secrets_counter(victim, "handshakes_failed") == failed + cuts);
}

TEST_WITH(proof_is_taken_when_its_bytes_come_one_by_one, open_group, close_group)
{
    struct by_hand h = dial(OUR_SECRET);
    tenrec_error err;

    while (!proof_is_complete(h.proof)) {
        by_hand_send(&h, 1);
        assert_status(by_hand_take(&h, &err), &err);
    }
    by_hand_close(&h);
}

static void open_hasty_group(void)
{
    setenv("TENREC_BACKENDS__TENSORPIPE__HELLO_TIMEOUT", "300ms", 1);
    open_group();
    unsetenv("TENREC_BACKENDS__TENSORPIPE__HELLO_TIMEOUT");
}

TEST_WITH(connection_is_closed_when_its_proof_stands_still, open_hasty_group, close_group)
{
    struct by_hand h = dial(OUR_SECRET);
    size_t len;
    const void *out = proof_output(h.proof, &len);

    raw_send(h.fd, out, len / 2);
    assert_true(raw_closed(h.fd));
    by_hand_close(&h);
}

int main(void)
{
    int failed;

    setenv("TENREC_TRANSPORTS", "uv", 1);
    setenv("TENREC_CHANNELS", "basic", 1);
    cluster_use("tensorpipe");
    secrets_make();
    failed = testing_run(NULL, NULL);
    secrets_remove();
    return failed;
}
