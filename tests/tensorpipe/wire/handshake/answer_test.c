/* SPDX-License-Identifier: Apache-2.0 */
/* answer_test.c - the answer to a brochure, and what a client believes of it. */
#include "handshake.h"
#include "wire/handshake/brochure.h"

#include <stdlib.h>

TEST(answer_writes_the_bytes_of_a_real_listener)
{
    static const uint64_t ids[1] = { 1 };
    const struct wire_ids wire_ids = { false, 0, 0, ids };
    unsigned char buf[256];
    struct wire_selection s;
    struct brochure b;
    struct hex frame;
    tenrec_error err;

    read_brochure(plain_brochure, &b, &frame);
    assert_int_equal(brochure_select(&b, &plain, &s, &err), TENREC_OK);
    check_bytes(buf, answer_write(buf, sizeof buf, &plain, &s, &wire_ids, false), plain_answer);
}

TEST(answer_check_accepts_answers_of_real_listeners)
{
    struct wire_selection s;
    struct nop_bytes ids;
    struct answer a;
    struct hex frame;
    tenrec_error err;

    read_answer(plain_answer, &a, &frame);
    assert_bytes_are(a.address, "127.0.0.1:27001");
    assert_int_equal(a.reply_id, 0);
    assert_int_equal(answer_check(&a, &plain, "uv", &s, &err), TENREC_OK);
    assert_non_null(wire_selection_find(&s, &cpu, &cpu));
    assert_true(answer_find_ids(&a, "basic", &ids));
    assert_int_equal(nop_uint64_at(ids, 0), 1);

    read_answer(shm_answer, &a, &frame);
    assert_int_equal(a.descriptor_id, 0);
    assert_int_equal(a.reply_id, 1);
    assert_int_equal(answer_check(&a, &local, "uv", &s, &err), TENREC_OK);
    assert_string_equal(local.transports[s.transport].name, "shm");
    assert_true(s.channel_used[0]);
    assert_false(s.channel_used[1]);
    assert_true(answer_find_ids(&a, "cma", &ids));
    assert_int_equal(nop_uint64_count(ids), 2);
    assert_int_equal(nop_uint64_at(ids, 1), 3);
}

/* The answer with its pairs turned round is what the client mirrors. */
TEST(answer_check_mirrors_the_pairs_of_devices)
{
    static const struct wire_channel_device gpu_only[] = { { GPU_DEVICE, "g" } };
    static const struct wire_channel_device cpu_only[] = { { CPU_DEVICE, "g" } };
    static const struct wire_channel listener_channel[] = { { "c", gpu_only, 1, 1 } };
    static const struct wire_channel client_channel[] = { { "c", cpu_only, 1, 1 } };
    static const struct wire_offer listener = { uv_only, listener_channel, 1, 1, NULL };
    static const struct wire_offer client = { uv_only, client_channel, 1, 1, NULL };
    static const uint64_t ids[1] = { 1 };
    const struct wire_ids wire_ids = { false, 0, 0, ids };
    unsigned char brochure[256], answer[256];
    struct wire_selection theirs, ours;
    struct brochure b;
    struct answer a;
    tenrec_error err;
    size_t len = brochure_write(brochure, sizeof brochure, &client);

    assert_int_equal(brochure_read(brochure, len, &b, &err), TENREC_OK);
    assert_int_equal(brochure_select(&b, &listener, &theirs, &err), TENREC_OK);
    assert_non_null(wire_selection_find(&theirs, &gpu, &cpu));
    len = answer_write(answer, sizeof answer, &listener, &theirs, &wire_ids, false);
    assert_int_equal(answer_read(answer, len, &a, &err), TENREC_OK);
    assert_int_equal(answer_check(&a, &client, "uv", &ours, &err), TENREC_OK);
    assert_non_null(wire_selection_find(&ours, &cpu, &gpu));
    assert_null(wire_selection_find(&ours, &gpu, &cpu));
}

TEST(answer_check_refuses_an_inconsistent_answer)
{
    static const struct {
        const char *from, *to, *says;
    } changes[] = {
        /* another transport, domain */
        { "b907 bd027576", "b907 bd027878", "transport \"xx\" was not offered" },
        { "bd0475763a2a bb01", "bd0475763a2b bb01", "is not ours" },
        /* no reply id; a descriptor id although the transport stays */
        { "bb010100", "bb010200", "no registration id for descriptor replies" },
        { "bb010100", "bb0201000005", "with a registration id" },
        /* an id too many, none at all */
        { "bc080100000000000000", "bc1001000000000000000200000000000000", "registration ids" },
        { "bb01 bd056261736963 bc080100000000000000", "bb00", "registration ids" },
        /* another channel, another device descriptor, a device without one */
        { CPU0 CPU0 BASIC, CPU0 CPU0 "bd016d", "channel \"m\" was not offered" },
        { ANY, "bd03616e7a ", "cannot serve our cpu:0 and their cpu:0" },
        { "ba02 " CPU0, "ba02 b902bd0363707501 ", "cannot serve our cpu:0 and their cpu:1" },
        { CPU0 BASIC, "b902bd0363707501 " BASIC, "cannot serve our cpu:1 and their cpu:0" },
    };
    char text[1024];

    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        /* The last place is meant where there are several. */
        const char *at = NULL, *next = plain_answer;
        struct wire_selection s;
        struct answer a;
        struct hex frame;
        tenrec_error err;

        while ((next = strstr(next, changes[i].from))) {
            at = next++;
        }
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - plain_answer), plain_answer,
                 changes[i].to, at + strlen(changes[i].from));
        read_answer(text, &a, &frame);
        assert_int_equal(answer_check(&a, &plain, "uv", &s, &err), TENREC_EPROTOCOL);
        assert_text_has(err.text, changes[i].says);
    }
}

TEST(answer_check_needs_a_descriptor_id_when_the_transport_changes)
{
    struct wire_selection s;
    struct answer a;
    struct hex frame;
    tenrec_error err;

    read_answer(shm_answer, &a, &frame);
    a.has_descriptor_id = false;
    assert_int_equal(answer_check(&a, &local, "uv", &s, &err), TENREC_EPROTOCOL);
    assert_text_has(err.text, "without registration id");
}

TEST(answer_refuses_every_cut)
{
    struct hex h = hex(plain_answer);
    struct answer a;
    tenrec_error err;

    for (size_t len = 0; len < h.len; len++) {
        void *frame = hex_exact(h.data, len);
        assert_int_equal(answer_read(frame, len, &a, &err), TENREC_EPROTOCOL);
        free(frame);
    }
}
