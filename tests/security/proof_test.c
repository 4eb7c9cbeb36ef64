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
