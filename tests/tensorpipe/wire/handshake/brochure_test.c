/* SPDX-License-Identifier: Apache-2.0 */
/* brochure_test.c - what a client offers, and what a listener selects of it. */
#include "../peer_side.h"
#include "handshake.h"

#include <stdlib.h>

TEST(brochure_writes_the_bytes_of_a_real_client)
{
    unsigned char buf[256];

    check_bytes(buf, brochure_write(buf, sizeof buf, &plain), plain_brochure);
}

TEST(brochure_keeps_unknown_names_reachable)
{
    struct wire_device_map map;
    struct nop_bytes text;
    struct brochure b;
    struct hex frame;

    read_brochure(shm_brochure, &b, &frame);
    assert_int_equal(b.n_transports, 2);
    assert_int_equal(b.n_channels, 3);
    assert_true(brochure_find_transport(&b, "shm", &text));
    assert_bytes_are(text, shm_domain);
    assert_true(wire_channels_find(b.channels, b.n_channels, "xth", &map));
    assert_true(wire_device_map_find(&map, &cpu, &text));
    assert_false(wire_device_map_find(&map, &gpu, &text));
    assert_false(brochure_find_transport(&b, "ibv", &text));
    assert_false(wire_channels_find(b.channels, b.n_channels, "mpt", &map));
}

TEST(brochure_keeps_the_first_of_duplicate_names)
{
    struct nop_bytes text;
    struct brochure b;
    struct hex frame;

    read_brochure("b902 bb02 bd027576 bd0161 bd027576 bd0162 bb00", &b, &frame);
    assert_true(brochure_find_transport(&b, "uv", &text));
    assert_bytes_are(text, "a");
}

TEST(select_takes_uv_and_basic_when_nothing_else_is_offered)
{
    struct wire_selection s;
    struct brochure b;
    struct hex frame;
    tenrec_error err;

    read_brochure(plain_brochure, &b, &frame);
    assert_int_equal(brochure_select(&b, &local, &s, &err), TENREC_OK);
    assert_string_equal(local.transports[s.transport].name, "uv");
    assert_int_equal(s.n_pairs, 1);
    assert_string_equal(local.channels[s.pairs[0].channel].name, "basic");
    assert_int_equal(selection_connections(&s, &local), 1);
}

TEST(select_answers_like_the_real_listener)
{
    static const uint64_t ids[2] = { 2, 3 };
    const struct wire_ids wire_ids = { true, 0, 1, ids };
    unsigned char buf[512];
    struct wire_selection s;
    struct brochure b;
    struct hex frame, expected = hex(shm_answer);
    tenrec_error err;
    size_t len;

    read_brochure(shm_brochure, &b, &frame);
    assert_int_equal(brochure_select(&b, &local, &s, &err), TENREC_OK);
    assert_int_equal(selection_connections(&s, &local), 2);
    len = answer_write(buf, sizeof buf, &local, &s, &wire_ids, false);
    /* The order of a map is free: ours of the two ids is the other one. */
    assert_int_equal(len, expected.len);
    assert_memory_equal(buf, expected.data, 14);
    check_bytes(buf + 14, 6, "bb02 0000 0101");
    assert_memory_equal(buf + 20, expected.data + 20, len - 20);
}

TEST(select_skips_a_transport_without_address_or_with_another_domain)
{
    const struct wire_transport transports[] = { { "shm", shm_domain, NULL },
                                                 { "uv", "uv:other", "127.0.0.1:1" } };
    const struct wire_offer offer = { transports, basic_only, 2, 1, NULL };
    struct wire_selection s;
    struct brochure b;
    struct hex frame;
    tenrec_error err;

    read_brochure(shm_brochure, &b, &frame);
    assert_int_equal(brochure_select(&b, &offer, &s, &err), TENREC_EPROTOCOL);
    assert_text_has(err.text, "no common transport");
}

TEST(select_gives_each_pair_of_devices_its_first_channel)
{
    unsigned char buf[512];
    const struct wire_pair *pair;
    struct wire_selection s;
    struct brochure b;
    tenrec_error err;
    size_t len = brochure_write(buf, sizeof buf, &with_gpu);

    assert_int_equal(brochure_read(buf, len, &b, &err), TENREC_OK);
    assert_int_equal(brochure_select(&b, &with_gpu, &s, &err), TENREC_OK);
    assert_int_equal(s.n_pairs, 4);
    pair = wire_selection_find(&s, &cpu, &cpu);
    assert_non_null(pair);
    assert_string_equal(with_gpu.channels[pair->channel].name, "basic");
    pair = wire_selection_find(&s, &cpu, &gpu);
    assert_non_null(pair);
    assert_string_equal(with_gpu.channels[pair->channel].name, "cuda_basic");
    assert_non_null(wire_selection_find(&s, &gpu, &cpu));
    assert_int_equal(selection_connections(&s, &with_gpu), 4);
}

TEST(select_works_without_any_channel)
{
    struct wire_selection s;
    struct brochure b;
    struct hex frame;
    tenrec_error err;

    read_brochure("b902 bb01 " UV "bb00", &b, &frame);
    assert_int_equal(brochure_select(&b, &plain, &s, &err), TENREC_OK);
    assert_int_equal(s.n_pairs, 0);
    assert_int_equal(selection_connections(&s, &plain), 0);
}

TEST(select_refuses_more_pairs_than_its_capacity)
{
    static unsigned char buf[8192];
    struct wire_channel_device own[2] = { { CPU_DEVICE, "any" }, { GPU_DEVICE, "any" } };
    const struct wire_channel channel = { "basic", own, 2, 1 };
    const struct wire_offer offer = { uv_only, &channel, 1, 1, NULL };
    struct wire_selection s;
    struct nop_writer w;
    struct brochure b;
    tenrec_error err;

    nop_writer_init(&w, buf, sizeof buf);
    nop_write_struct(&w, 2);
    nop_write_map(&w, 1);
    nop_write_string(&w, nop_text("uv"));
    nop_write_string(&w, nop_text("uv:*"));
    nop_write_map(&w, 1);
    nop_write_string(&w, nop_text("basic"));
    nop_write_map(&w, 200);
    for (int32_t i = 0; i < 200; i++) {
        const struct nop_device device = { nop_text("cuda"), i };
        nop_write_device(&w, &device);
        nop_write_string(&w, nop_text("any"));
    }
    assert_int_equal(brochure_read(buf, w.len, &b, &err), TENREC_OK);
    assert_int_equal(brochure_select(&b, &offer, &s, &err), TENREC_ETOOBIG);
}

TEST(brochure_refuses_malformed_bytes)
{
    static const char *const bad[] = {
        "",
        "b902",
        "b903 bb00 bb00 bb00",
        "b902 bb01 bd027576 bb00",
        "b902 ba00 bb00",
        "b902 bb00 bb01 bd0161 bb01 b902 bd0363707500",
        "b902 bb80ff bb00",
        "b902 bb00 bb01 bd0161 bb01 b902 bd03637075 8000 bd0161",
    };
    struct brochure b;
    tenrec_error err;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct hex h = hex(bad[i]);
        void *frame = hex_exact(h.data, h.len);
        assert_int_equal(brochure_read(frame, h.len, &b, &err), TENREC_EPROTOCOL);
        assert_text_has(err.text, "brochure.");
        free(frame);
    }
}

TEST(brochure_refuses_more_names_than_its_limit)
{
    static unsigned char buf[1024];
    struct nop_writer w;
    struct brochure b;
    tenrec_error err;

    nop_writer_init(&w, buf, sizeof buf);
    nop_write_struct(&w, 2);
    nop_write_map(&w, WIRE_MAX_NAMES + 1);
    for (int i = 0; i <= WIRE_MAX_NAMES; i++) {
        nop_write_string(&w, nop_text("a"));
        nop_write_string(&w, nop_text("b"));
    }
    nop_write_map(&w, 0);
    assert_int_equal(brochure_read(buf, w.len, &b, &err), TENREC_ETOOBIG);
    assert_text_has(err.text, "65 pairs; the limit is 64");
}
