/* SPDX-License-Identifier: Apache-2.0 */
/* proof_record_test.c - records as bytes, and bytes that are none. */
#include "security/proof/proof_record.h"

#include "../testing.h"

static size_t pack(const struct proof_record *r, uint8_t ret[PROOF_RECORD_MAX])
{
    const size_t len = proof_record_pack(r, ret);

    memset(ret + len - proof_record_mac_len(r->kind), 0xcc, proof_record_mac_len(r->kind));
    return len;
}

static size_t pack_hello(uint8_t ret[PROOF_RECORD_MAX], bool longest)
{
    struct proof_record r = { .kind = PROOF_HELLO };

    r.hello.has_secret = true;
    memset(r.hello.nonce, 0xaa, sizeof r.hello.nonce);
    strcpy(r.hello.purpose, "test");
    r.hello.me = (struct proof_party_text){ -1, 7, "me", "uv://h:1" };
    r.hello.wanted = (struct proof_party_text){ 3, 0, "", "" };
    memcpy(r.hello.label, "\0l", 2);
    r.hello.label_len = 2;
    if (longest) {
        memset(r.hello.purpose, 'p', PROOF_PURPOSE_MAX);
        memset(r.hello.me.name, 'n', TENREC_NAME_MAX);
        memset(r.hello.me.address, 'a', PROOF_ADDRESS_MAX);
        r.hello.wanted = r.hello.me;
        r.hello.label_len = PROOF_LABEL_MAX;
    }
    return pack(&r, ret);
}

static tenrec_status unpack(const uint8_t *data, size_t len, struct proof_record *ret)
{
    size_t found;
    tenrec_error err;
    tenrec_status st = proof_record_peek(data, len, &found, &err);

    if (st != TENREC_OK)
        return st;
    assert_int_equal(found, len);
    return proof_record_unpack(data, len, ret, &err);
}

static void set_body(uint8_t *record, size_t body)
{
    record[6] = (uint8_t)body;
    record[7] = (uint8_t)(body >> 8);
}

TEST(record_of_a_hello_reads_as_it_was_written)
{
    uint8_t data[PROOF_RECORD_MAX];
    struct proof_record r;

    assert_int_equal(unpack(data, pack_hello(data, false), &r), TENREC_OK);
    assert_int_equal(r.kind, PROOF_HELLO);
    assert_true(r.hello.has_secret);
    assert_int_equal(r.hello.nonce[31], 0xaa);
    assert_string_equal(r.hello.purpose, "test");
    assert_int_equal(r.hello.me.rank, -1);
    assert_int_equal(r.hello.me.incarnation, 7);
    assert_string_equal(r.hello.me.address, "uv://h:1");
    assert_int_equal(r.hello.wanted.rank, 3);
    assert_string_equal(r.hello.wanted.name, "");
    assert_int_equal(r.hello.label_len, 2);
    assert_memory_equal(r.hello.label, "\0l", 2);
}

TEST(record_of_the_longest_fields_fits)
{
    uint8_t data[PROOF_RECORD_MAX];
    struct proof_record r;

    assert_int_equal(unpack(data, pack_hello(data, true), &r), TENREC_OK);
    assert_int_equal(strlen(r.hello.wanted.address), PROOF_ADDRESS_MAX);
    assert_int_equal(r.hello.label_len, PROOF_LABEL_MAX);
}

TEST(record_of_each_other_kind_reads_as_it_was_written)
{
    const struct proof_record records[] = {
        { .kind = PROOF_CHALLENGE, .nonce = { 1, 2 } },
        { .kind = PROOF_ANSWER },
        { .kind = PROOF_ACCEPTED, .party = { 5, 6, "w", "a" } },
        { .kind = PROOF_REFUSED, .reason = PROOF_OTHER_SECRET },
    };
    uint8_t data[PROOF_RECORD_MAX];
    struct proof_record r;

    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++) {
        const size_t len = pack(&records[i], data);
        assert_int_equal(unpack(data, len, &r), TENREC_OK);
        assert_int_equal(r.kind, records[i].kind);
        if (r.kind == PROOF_CHALLENGE)
            assert_int_equal(r.nonce[1], 2);
        if (r.kind == PROOF_ACCEPTED)
            assert_int_equal(r.party.incarnation, 6);
        if (r.kind == PROOF_REFUSED)
            assert_int_equal(r.reason, PROOF_OTHER_SECRET);
        /* One byte more or less is another record. */
        set_body(data, len - PROOF_HEAD_LEN - 1);
        assert_int_equal(unpack(data, len - 1, &r), TENREC_EPROTOCOL);
        set_body(data, len - PROOF_HEAD_LEN + 1);
        assert_int_equal(unpack(data, len + 1, &r), TENREC_EPROTOCOL);
    }
}

TEST(record_is_malformed_when_its_body_ends_early)
{
    uint8_t data[PROOF_RECORD_MAX];
    struct proof_record r;
    const size_t len = pack_hello(data, false);

    for (size_t n = PROOF_HEAD_LEN; n < len; n++) {
        set_body(data, n - PROOF_HEAD_LEN);
        assert_int_equal(unpack(data, n, &r), TENREC_EPROTOCOL);
    }
}

TEST(record_head_is_refused_at_its_first_wrong_byte)
{
    static const struct {
        size_t at;
        uint8_t byte;
        const char *text;
    } cases[] = {
        { 0, 'X', "the bytes begin no record" },
        { 3, 'p', "the bytes begin no record" },
        { 4, 2, "version 2, 1 was expected" },
        { 5, 0, "unknown kind" },
        { 5, 6, "unknown kind" },
        { 7, 4, "the record is too long" },
    };
    uint8_t data[PROOF_RECORD_MAX];
    tenrec_error err;
    size_t len;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pack_hello(data, false);
        data[cases[i].at] = cases[i].byte;
        assert_int_equal(proof_record_peek(data, cases[i].at, &len, &err), TENREC_OK);
        assert_int_equal(len, 0);
        assert_int_equal(proof_record_peek(data, cases[i].at + 1, &len, &err), TENREC_EPROTOCOL);
        assert_text_has(err.text, cases[i].text);
    }
}

TEST(record_is_malformed_when_a_field_is)
{
    /* The offsets of a short hello: flags, length of the purpose, its text, ranks. */
    static const struct {
        size_t at;
        uint8_t byte;
    } cases[] = { { 8, 2 }, { 41, 33 }, { 42, 0 }, { 46, 0xfe } };
    uint8_t data[PROOF_RECORD_MAX];
    struct proof_record r;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const size_t len = pack_hello(data, false);
        data[cases[i].at] = cases[i].byte;
        assert_int_equal(unpack(data, len, &r), TENREC_EPROTOCOL);
    }
}

TEST(proof_begins_with_its_magic)
{
    uint8_t data[PROOF_RECORD_MAX];

    pack_hello(data, false);
    assert_true(proof_begins(data, 4));
    assert_false(proof_begins(data, 3));
    assert_false(proof_begins("TNRQ", 4));
}
