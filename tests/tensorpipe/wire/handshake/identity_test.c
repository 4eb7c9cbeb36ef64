/* SPDX-License-Identifier: Apache-2.0 */
/* identity_test.c - the identity of a Tenrec peer. */
#include "handshake.h"
#include "wire/handshake/identity.h"

TEST(identity_travels_both_ways_between_tenrec_peers)
{
    static const uint64_t ids[1] = { 1 };
    const struct wire_ids wire_ids = { false, 0, 0, ids };
    const struct identity client = { IDENTITY_VERSION, 3, 0xfedcba9876543210u, 3 };
    const struct identity listener = { IDENTITY_VERSION, TENREC_ANONYMOUS, 0, 0 };
    unsigned char brochure[256], answer[256];
    char client_text[IDENTITY_MAX], listener_text[IDENTITY_MAX];
    struct wire_offer client_offer = plain, listener_offer = plain;
    struct wire_selection s;
    struct identity read;
    struct brochure b;
    struct answer a;
    tenrec_error err;
    size_t len;

    identity_write(client_text, &client);
    identity_write(listener_text, &listener);
    assert_string_equal(client_text, "tenrec:1:3:fedcba9876543210:3");
    client_offer.identity = client_text;
    listener_offer.identity = listener_text;

    len = brochure_write(brochure, sizeof brochure, &client_offer);
    assert_int_equal(brochure_read(brochure, len, &b, &err), TENREC_OK);
    assert_int_equal(identity_of_client(&b, &read, &err), TENREC_OK);
    assert_int_equal(read.rank, 3);
    assert_true(read.incarnation == client.incarnation);
    assert_int_equal(read.capabilities, 3);

    assert_int_equal(brochure_select(&b, &listener_offer, &s, &err), TENREC_OK);
    len = answer_write(answer, sizeof answer, &listener_offer, &s, &wire_ids, true);
    assert_int_equal(answer_read(answer, len, &a, &err), TENREC_OK);
    assert_int_equal(answer_check(&a, &client_offer, "uv", &s, &err), TENREC_OK);
    assert_int_equal(identity_of_listener(&a, &read, &err), TENREC_OK);
    assert_int_equal(read.version, IDENTITY_VERSION);
    assert_int_equal(read.rank, TENREC_ANONYMOUS);
}

TEST(identity_is_absent_in_plain_peers)
{
    struct identity read;
    struct brochure b;
    struct answer a;
    struct hex frame;
    tenrec_error err;

    read_brochure(shm_brochure, &b, &frame);
    assert_int_equal(identity_of_client(&b, &read, &err), TENREC_OK);
    assert_int_equal(read.version, 0);
    assert_int_equal(read.rank, TENREC_ANONYMOUS);
    read_answer(shm_answer, &a, &frame);
    assert_int_equal(identity_of_listener(&a, &read, &err), TENREC_OK);
    assert_int_equal(read.version, 0);
}

TEST(identity_skips_fields_of_later_versions)
{
    struct identity read;
    tenrec_error err;

    assert_int_equal(
        identity_read(nop_text("tenrec:2:0:1f:ff:abc:40:30:more:and more"), &read, &err),
        TENREC_OK);
    assert_int_equal(read.version, 2);
    assert_int_equal(read.incarnation, 0x1f);
    assert_int_equal(read.capabilities, 0xff);
    assert_int_equal(read.proof, 0xabc);
    assert_int_equal(read.max_message, 0x40);
    assert_int_equal(read.max_object, 0x30);
}

TEST(identity_tells_the_limits_of_its_reader)
{
    struct identity identity = { IDENTITY_VERSION, 3, 0x1f, 3, 0, 1 << 20, 4096 }, read;
    char text[IDENTITY_MAX];
    tenrec_error err;

    identity_write(text, &identity);
    assert_string_equal(text, "tenrec:1:3:1f:3:0:100000:1000");
    assert_int_equal(identity_read(nop_text(text), &read, &err), TENREC_OK);
    assert_int_equal(read.proof, 0);
    assert_int_equal(read.max_message, 1 << 20);
    assert_int_equal(read.max_object, 4096);
    assert_int_equal(identity_read(nop_text("tenrec:1:3:1f:3:5"), &read, &err), TENREC_OK);
    assert_int_equal(read.max_message, 0);
}

TEST(identity_has_no_proof_when_no_proof_was_written)
{
    const struct identity none = { IDENTITY_VERSION, 3, 7, 3, 0 };
    const struct identity longest = { UINT32_MAX, INT16_MAX,  UINT64_MAX, UINT64_MAX,
                                      UINT64_MAX, UINT64_MAX, UINT64_MAX };
    char text[IDENTITY_MAX];
    struct identity read;
    tenrec_error err;

    identity_write(text, &none);
    assert_int_equal(identity_read(nop_text(text), &read, &err), TENREC_OK);
    assert_true(read.proof == 0);
    identity_write(text, &longest);
    assert_int_equal(identity_read(nop_text(text), &read, &err), TENREC_OK);
    assert_true(read.proof == UINT64_MAX);
}

/* The first vectors of the reference implementation that are whole words long. */
TEST(proof_hash_is_siphash)
{
    const uint64_t k0 = 0x0706050403020100, k1 = 0x0f0e0d0c0b0a0908;
    const uint64_t word[] = { 0x0706050403020100 };

    assert_true(proof_hash(k0, k1, NULL, 0) == 0x726fdb47dd0e0e31);
    assert_true(proof_hash(k0, k1, word, 1) == 0x93f5f5799a932462);
}

TEST(proof_differs_for_each_pair_role_and_life)
{
    const struct proof_life a = { 0, 1, 11 }, b = { 1, 1, 22 }, c = { 1, 2, 22 }, d = { 1, 1, 23 };
    const uint64_t proof = proof_make(&a, &b, PROOF_OF_CALLER);

    assert_true(proof == proof_make(&a, &b, PROOF_OF_CALLER));
    assert_true(proof != proof_make(&a, &b, PROOF_OF_LISTENER));
    assert_true(proof != proof_make(&b, &a, PROOF_OF_CALLER));
    assert_true(proof != proof_make(&a, &c, PROOF_OF_CALLER));
    assert_true(proof != proof_make(&a, &d, PROOF_OF_CALLER));
}

TEST(identity_refuses_malformed_bytes)
{
    static const char *const bad[] = {
        "",
        "tenrec:",
        "tenrec",
        "tenrec:1",
        "tenrec:1:2",
        "tenrec:1:2:3",
        "tenrec:0:1:2:3",
        "tenrec:1:-2:3:4",
        "tenrec:1:32768:1:1",
        "tenrec:1:1:11112222333344445:1",
        "tenrec:1:1:G:1",
        "tenrec:1:1:1:",
        "tenrec:1:1:1:1:x",
        "tenrec:1:1:1:1:11112222333344445",
        "tenrec:1:1:1:1:1:x",
        "tenrec:1:1:1:1:1:1",
        "tenrec:1:1:1:1:1:1:x",
        "tenrec:4294967296:1:1:1",
        "uv:*",
        "tenrec:1::1:1",
    };
    struct identity read;
    tenrec_error err;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(identity_read(nop_text(bad[i]), &read, &err), TENREC_EPROTOCOL);
        assert_text_has(err.text, bad[i]);
    }
}
