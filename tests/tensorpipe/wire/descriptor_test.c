/* SPDX-License-Identifier: Apache-2.0 */
/* descriptor_test.c - Descriptor and DescriptorReply against captured bytes. */
#include "peer_side.h"
#include "wire_test.h"

#define CPU0 "b902bd0363707500 "

static const struct descriptor_limits limits = { 16, 1024 };

static void check_bytes(const unsigned char *buf, size_t len, const char *expected)
{
    struct hex h = hex(expected);

    assert_int_equal(len, h.len);
    assert_memory_equal(buf, h.data, h.len);
}

static void read_ok(const struct hex *frame, struct descriptor *ret)
{
    tenrec_error err;

    if (descriptor_read(frame->data, frame->len, &limits, ret, &err))
        fail_msg("%s", err.text);
}

static struct tenrec_tensor_desc cpu_tensor(uint64_t bytes)
{
    return (struct tenrec_tensor_desc){ .bytes = bytes,
                                        .device = { TENREC_CPU, 0 },
                                        .target = { TENREC_CPU, 0 } };
}

TEST(descriptor_writes_the_bytes_of_torch_for_a_call)
{
    const uint64_t plain[4] = { 4, 8, 92, 47 }, with_tensor[4] = { 4, 8, 159, 188 };
    const struct tenrec_tensor_desc tensor = cpu_tensor(8);
    unsigned char buf[DESCRIPTOR_MAX(1)];

    check_bytes(buf, descriptor_write(buf, sizeof buf, plain, NULL, 0, 0, NULL),
                "b903bd00ba04b90204bd00b90208bd00b9025cbd00b9022fbd00ba00");
    check_bytes(buf,
                descriptor_write(buf, sizeof buf, with_tensor, &tensor, 1, sizeof tensor, NULL),
                "b903bd00ba04b90204bd00b90208bd00b902809fbd00b90280bcbd00ba01b90408b902bd0363707500"
                "b902bd0363707500bd00");
}

TEST(descriptor_fits_its_maximum)
{
    const uint64_t huge[4] = { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX };
    struct tenrec_tensor_desc tensors[200];

    for (int i = 0; i < 200; i++) {
        tensors[i] = cpu_tensor(UINT64_MAX);
        tensors[i].device = tensors[i].target = (struct tenrec_device){ TENREC_CUDA, INT32_MAX };
    }
    assert_true(descriptor_write(NULL, 0, huge, tensors, 200, sizeof tensors[0], NULL) <=
                DESCRIPTOR_MAX(200));
    assert_true(descriptor_write(NULL, 0, huge, NULL, 0, 0, NULL) <= DESCRIPTOR_MAX(0));
}

TEST(descriptor_reads_its_own_wide_steps)
{
    const uint64_t lengths[4] = { 4, 8, 0, 300 };
    struct {
        struct tenrec_tensor_desc tensor;
        char more[40]; /* a descriptor of a later version is longer */
    } tensors[3] = { { .tensor = cpu_tensor(0) },
                     { .tensor = cpu_tensor(70000) },
                     { .tensor = cpu_tensor(16) } };
    unsigned char buf[DESCRIPTOR_MAX(3)];
    struct descriptor_tensor tensor;
    struct tenrec_device device;
    struct descriptor d;
    tenrec_error err;
    size_t len;

    tensors[2].tensor.device = (struct tenrec_device){ TENREC_CUDA, 1 };
    len =
        descriptor_write(buf, sizeof buf, lengths, &tensors[0].tensor, 3, sizeof tensors[0], NULL);
    assert_int_equal(descriptor_read(buf, len, &limits, &d, &err), TENREC_OK);
    assert_int_equal(d.n_payloads, 4);
    assert_memory_equal(d.payload_len, lengths, sizeof lengths);
    assert_int_equal(d.payload_bytes, 312);
    assert_int_equal(d.tensor_bytes, 70016);
    assert_int_equal(d.n_targetless, 0);
    for (int i = 0; i < 3; i++) {
        assert_true(descriptor_next_tensor(&d, &tensor));
        assert_int_equal(tensor.length, tensors[i].tensor.bytes);
        assert_true(tensor.has_target);
        assert_true(device_from_wire(&tensor.source, &device));
        assert_int_equal(device.kind, tensors[i].tensor.device.kind);
        assert_int_equal(device.index, tensors[i].tensor.device.index);
    }
    assert_false(descriptor_next_tensor(&d, &tensor));
}

TEST(descriptor_refuses_to_write_an_unknown_device)
{
    const uint64_t lengths[4] = { 4, 8, 0, 47 };
    struct tenrec_tensor_desc tensor = cpu_tensor(1);
    unsigned char buf[DESCRIPTOR_MAX(1)];

    tensor.target.kind = 99;
    assert_int_equal(descriptor_write(buf, sizeof buf, lengths, &tensor, 1, sizeof tensor, NULL),
                     0);
}

TEST(descriptor_reads_metadata_and_any_number_of_payloads)
{
    struct hex h = hex("b903 bd06 6d6574612d31 ba02 b90200 bd027030 b9020a bd027031 ba00");
    struct payload_reader payloads = payload_reader(h.data, h.len);
    struct payload payload;
    struct descriptor d;

    read_ok(&h, &d);
    assert_bytes_are(d.metadata, "meta-1");
    assert_int_equal(d.n_payloads, 2);
    assert_int_equal(d.n_tensors, 0);
    assert_true(payload_next(&payloads, &payload));
    assert_int_equal(payload.length, 0);
    assert_bytes_are(payload.metadata, "p0");
    assert_true(payload_next(&payloads, &payload));
    assert_int_equal(payload.length, 10);
    assert_bytes_are(payload.metadata, "p1");
    assert_false(payload_next(&payloads, &payload));
}

TEST(descriptor_counts_tensors_without_target)
{
    struct hex h = hex("b903 bd026d33 ba01 b90203bd00 ba02 b90400" CPU0 CPU0 "bd02747a b90410" CPU0
                       "be bd02746e");
    struct descriptor_tensor tensor;
    struct descriptor d;

    read_ok(&h, &d);
    assert_int_equal(d.n_targetless, 1);
    assert_true(descriptor_next_tensor(&d, &tensor));
    assert_true(tensor.has_target);
    assert_int_equal(tensor.length, 0);
    assert_true(descriptor_next_tensor(&d, &tensor));
    assert_false(tensor.has_target);
    assert_bytes_are(tensor.metadata, "tn");
}

TEST(descriptor_accepts_wide_numbers_and_trailing_bytes)
{
    struct hex h =
        hex("b983 0300000000000000 bd8000 ba82 01000000 b902 830500000000000000 bd810000 "
            "ba8000 ffffff");
    struct descriptor d;

    read_ok(&h, &d);
    assert_int_equal(d.payload_len[0], 5);
}

/* One wide number more sends the same descriptor the long way. */
TEST(descriptor_reads_the_plain_form_like_any_other)
{
    struct hex quick =
        hex("b903bd00ba04 b90204bd00 b902812c01bd00 b9028270110100bd00 b9022fbd00 ba00");
    struct hex slow =
        hex("b903bd8000ba04 b90204bd00 b902812c01bd00 b9028270110100bd00 b9022fbd00 ba00");
    static const uint64_t lengths[4] = { 4, 300, 70000, 47 };
    struct payload_reader payloads[2] = { payload_reader(quick.data, quick.len),
                                          payload_reader(slow.data, slow.len) };
    struct payload payload;
    struct descriptor_tensor tensor;
    struct descriptor d[2];

    read_ok(&quick, &d[0]);
    read_ok(&slow, &d[1]);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(d[k].n_payloads, 4);
        assert_int_equal(d[k].n_tensors, 0);
        assert_int_equal(d[k].n_targetless, 0);
        assert_int_equal(d[k].payload_bytes, 70351);
        assert_int_equal(d[k].tensor_bytes, 0);
        assert_int_equal(d[k].metadata.len, 0);
        assert_memory_equal(d[k].payload_len, lengths, sizeof lengths);
        for (int i = 0; i < 4; i++) {
            assert_true(payload_next(&payloads[k], &payload));
            assert_int_equal(payload.length, lengths[i]);
        }
        assert_false(payload_next(&payloads[k], &payload));
        assert_false(descriptor_next_tensor(&d[k], &tensor));
    }
}

TEST(descriptor_refuses_every_cut)
{
    struct hex h = hex("b903bd00ba04b90204bd00b90208bd00b902809fbd00b90280bcbd00ba01b90408b902bd03"
                       "63707500b902bd0363707500bd00");
    struct descriptor d;
    tenrec_error err;

    for (size_t len = 0; len < h.len; len++) {
        void *frame = hex_exact(h.data, len);
        assert_int_equal(descriptor_read(frame, len, &limits, &d, &err), TENREC_EPROTOCOL);
        assert_text_has(err.text, "descriptor.");
        free(frame);
    }
}

TEST(descriptor_refuses_every_cut_of_the_plain_form)
{
    struct hex h = hex("b903bd00ba04 b90204bd00 b902812c01bd00 b9028270110100bd00 b9022fbd00 ba00");
    struct descriptor d;
    tenrec_error err;

    for (size_t len = 0; len < h.len; len++) {
        void *frame = hex_exact(h.data, len);
        assert_int_equal(descriptor_read(frame, len, &limits, &d, &err), TENREC_EPROTOCOL);
        free(frame);
    }
}

TEST(descriptor_refuses_values_beyond_a_limit)
{
    static const struct descriptor_limits tight = { 1, 1 };
    static const struct {
        const char *hex, *says;
    } bad[] = {
        { "b903bd00 ba02b90201bd00b90201bd00 ba00",
          "payloads at byte 6: 2 of them; the limit is 1" },
        { "b903bd00 ba00 ba02b90401" CPU0 "bebd00b90401" CPU0 "bebd00",
          "tensors at byte 8: 2 of them; the limit is 1" },
    };
    struct descriptor d;
    tenrec_error err;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct hex h = hex(bad[i].hex);
        assert_int_equal(descriptor_read(h.data, h.len, &tight, &d, &err), TENREC_ETOOBIG);
        assert_text_has(err.text, bad[i].says);
    }
}

TEST(descriptor_refuses_a_sum_of_lengths_that_no_counter_holds)
{
    struct hex h = hex("b903bd00 ba01b9020abd00 ba01b90483ffffffffffffff7f" CPU0 "bebd00");
    struct descriptor d;
    tenrec_error err;

    assert_int_equal(descriptor_read(h.data, h.len, &limits, &d, &err), TENREC_EPROTOCOL);
    assert_text_has(err.text, "a message of 2^63 bytes or more");
    h = hex("b903bd00 ba01b9020abd00 ba01b90483f5ffffffffffff7f" CPU0 "bebd00");
    read_ok(&h, &d);
    assert_true(d.payload_bytes + d.tensor_bytes == INT64_MAX);
}

TEST(descriptor_reply_writes_the_bytes_of_the_library)
{
    const struct nop_device cpu = { nop_text("cpu"), 0 };
    unsigned char buf[DESCRIPTOR_REPLY_MAX(1)];

    check_bytes(buf, descriptor_reply_write(buf, sizeof buf, &cpu, 1), "b901ba01b902bd0363707500");
}

TEST(descriptor_reply_needs_one_device_per_missing_target)
{
    struct hex h = hex("b901ba02 " CPU0 "b902bd046375646101");
    struct nop_device devices[3];
    tenrec_error err;

    assert_int_equal(descriptor_reply_read(h.data, h.len, 2, devices, &err), TENREC_OK);
    assert_bytes_are(devices[0].type, "cpu");
    assert_int_equal(devices[1].index, 1);
    assert_int_equal(descriptor_reply_read(h.data, h.len, 3, devices, &err), TENREC_EPROTOCOL);
    assert_text_has(err.text, "expected 3 devices, got 2");
    assert_int_equal(descriptor_reply_read(h.data, h.len, 1, devices, &err), TENREC_EPROTOCOL);
    assert_int_equal(descriptor_reply_read(h.data, h.len - 1, 2, devices, &err), TENREC_EPROTOCOL);
}

TEST(device_has_a_name_on_the_wire_only_when_known_to_peers)
{
    const struct nop_device odd[] = { { nop_text("cpu"), 1 },
                                      { nop_text("cuda"), -1 },
                                      { nop_text("xpu"), 0 } };
    struct tenrec_device device;

    for (size_t i = 0; i < 3; i++)
        assert_false(device_from_wire(&odd[i], &device));
}
