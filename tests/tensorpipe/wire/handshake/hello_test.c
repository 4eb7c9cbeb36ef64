/* SPDX-License-Identifier: Apache-2.0 */
/* hello_test.c - the first bytes of a connection. */
#include "handshake.h"
#include "wire/handshake/identity.h"

TEST(hello_writes_the_bytes_of_a_real_client)
{
    unsigned char buf[HELLO_MAX(6)];

    check_bytes(buf, hello_write_spontaneous(buf, sizeof buf, nop_text("client")),
                "b800b901bd06636c69656e74");
    check_bytes(buf, hello_write_spontaneous(buf, sizeof buf, nop_text("")), "b800b901bd00");
    check_bytes(buf, hello_write_requested(buf, sizeof buf, 0), "b801b90100");
    check_bytes(buf, hello_write_requested(buf, sizeof buf, 300), "b801b901812c01");
}

TEST(hello_reads_every_kind)
{
    struct hex h = hex("b800b901bd06636c69656e74 ffff");
    struct hello hello;
    tenrec_error err;

    assert_int_equal(hello_read(h.data, h.len, &hello, &err), TENREC_OK);
    assert_int_equal(hello.kind, HELLO_SPONTANEOUS);
    assert_bytes_are(hello.name, "client");
    h = hex("b801b901 82ff000000");
    assert_int_equal(hello_read(h.data, h.len, &hello, &err), TENREC_OK);
    assert_int_equal(hello.kind, HELLO_REQUESTED);
    assert_int_equal(hello.id, 255);
    h = hex("b8ffbe");
    assert_int_equal(hello_read(h.data, h.len, &hello, &err), TENREC_OK);
    assert_int_equal(hello.kind, HELLO_EMPTY);
}

TEST(hello_refuses_malformed_bytes)
{
    static const char *const bad[] = { "",           "b8",
                                       "b802b90100", "b800b902bd00bd00",
                                       "b800b901",   "474554202f20485454502f312e310d0a" };
    struct hello hello;
    tenrec_error err;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct hex h = hex(bad[i]);
        assert_int_equal(hello_read(h.data, h.len, &hello, &err), TENREC_EPROTOCOL);
        assert_text_has(err.text, "hello.");
    }
}
