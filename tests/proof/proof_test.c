/* SPDX-License-Identifier: Apache-2.0 */
/* proof_test.c - a proof between two sides that mean well. */
#include "pair.h"

TEST(proof_is_complete_on_both_sides_when_the_secrets_are_equal)
{
    struct pair x;
    size_t len;

    pair_open(&x, 7, 7);
    pair_run(&x, SIZE_MAX);
    assert_status(x.status[DIALLER], &x.err[DIALLER]);
    assert_status(x.status[LISTENER], &x.err[LISTENER]);
    assert_true(proof_is_complete(x.side[DIALLER]) && proof_is_complete(x.side[LISTENER]));
    assert_string_equal(proof_peer(x.side[DIALLER])->name, "worker0");
    assert_string_equal(proof_peer(x.side[DIALLER])->address, "uv://127.0.0.1:1010");
    assert_int_equal(proof_peer(x.side[DIALLER])->incarnation, 10);
    assert_string_equal(proof_peer(x.side[LISTENER])->name, "worker1");
    assert_int_equal(proof_peer(x.side[LISTENER])->rank, 1);
    assert_memory_equal(proof_label(x.side[LISTENER], &len), "label", 5);
    assert_int_equal(len, 5);
    pair_close(&x);
}

TEST(proof_is_complete_when_each_byte_comes_alone)
{
    struct pair x;

    pair_open(&x, 7, 7);
    pair_run(&x, 1);
    assert_true(proof_is_complete(x.side[DIALLER]) && proof_is_complete(x.side[LISTENER]));
    pair_close(&x);
}

TEST(proof_is_refused_by_the_dialler_when_the_secrets_differ)
{
    struct pair x;

    pair_open(&x, 7, 8);
    pair_run(&x, SIZE_MAX);
    assert_int_equal(x.status[DIALLER], TENREC_EPERM);
    assert_int_equal(x.status[LISTENER], TENREC_EPERM);
    assert_text_has(x.err[DIALLER].text, "another group secret");
    assert_text_has(x.err[LISTENER].text, "another group secret");
    pair_close(&x);
}

/* An encrypted connection is below, and its ends are those of the proof. */
TEST(proof_is_complete_when_both_sides_have_one_connection)
{
    const uint8_t binding[2][PROOF_BINDING_BYTES] = { "one connection", "another" };
    struct secret *s = pair_secret(7);
    struct proof_terms dialler = pair_dialler(s), listener = pair_listener(s);
    struct pair x;

    dialler.binding = binding[0];
    for (int other = 0; other < 2; other++) {
        listener.binding = binding[other];
        pair_open_with(&x, &dialler, &listener);
        pair_run(&x, SIZE_MAX);
        assert_int_equal(proof_is_complete(x.side[DIALLER]), !other);
        assert_int_equal(proof_is_complete(x.side[LISTENER]), !other);
        pair_close(&x);
    }
    secret_drop(s);
}

TEST(proof_is_refused_when_one_side_has_no_connection_below)
{
    const uint8_t binding[PROOF_BINDING_BYTES] = { 0 };
    struct secret *s = pair_secret(7);
    const struct proof_terms dialler = pair_dialler(s);
    struct proof_terms listener = pair_listener(s);
    struct pair x;

    listener.binding = binding;
    pair_open_with(&x, &dialler, &listener);
    pair_run(&x, SIZE_MAX);
    assert_int_equal(x.status[DIALLER], TENREC_EPERM);
    pair_close(&x);
    secret_drop(s);
}

TEST(proof_is_taken_back_when_the_name_is_another)
{
    struct pair x;

    pair_open(&x, 7, 7);
    pair_carry(&x, DIALLER, SIZE_MAX);
    pair_carry(&x, LISTENER, SIZE_MAX);
    pair_carry(&x, DIALLER, SIZE_MAX);
    assert_true(proof_is_complete(x.side[LISTENER]));
    proof_withdraw(x.side[LISTENER]);
    assert_false(proof_is_complete(x.side[LISTENER]));
    pair_carry(&x, LISTENER, SIZE_MAX);
    assert_int_equal(x.status[DIALLER], TENREC_EPERM);
    assert_text_has(x.err[DIALLER].text, "certificate is for another name");
    pair_close(&x);
}
