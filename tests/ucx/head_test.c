/* SPDX-License-Identifier: Apache-2.0 */
#include "head.h"

#include "../testing.h"

static struct tenrec_tensor_desc slot[2];
static const struct tenrec_msg msg = { .n_tensors = 2,
                                       .tensor_size = sizeof slot[0],
                                       .tensors = slot };

static const struct tenrec_tensor_desc good = { .bytes = 100,
                                                .byte_offset = 4,
                                                .dtype = { TENREC_DTYPE_FLOAT, 32, 1 },
                                                .ndim = 2,
                                                .device = { TENREC_CPU, 0 },
                                                .target = { TENREC_CPU, 0 },
                                                .flags = TENREC_TENSOR_REQUIRES_GRAD,
                                                .shape = { 3, 4 },
                                                .strides = { 8, 2 } };

/* Writes `t` as tensor `i` and reads at most `room` bytes of it. */
static tenrec_status read_back(const struct tenrec_tensor_desc *t, uint32_t i, bool apart,
                               size_t room, tenrec_error *err)
{
    unsigned char bytes[1024];
    const unsigned char *at = bytes;
    const size_t len = (size_t)(head_tensor_write(bytes, t, apart) - bytes);
    tenrec_status st;
    bool got;

    assert_int_equal(len, head_tensor_len(t));
    st = head_tensor_read(&at, bytes + (room < len ? room : len), &msg, i, &got, err);
    if (st == TENREC_OK) {
        assert_ptr_equal(at, bytes + len);
        assert_int_equal(got, apart);
    }
    return st;
}

static void assert_refused(struct tenrec_tensor_desc t, bool apart)
{
    tenrec_error err;

    assert_int_equal(read_back(&t, 0, apart, SIZE_MAX, &err), TENREC_EPROTOCOL);
}

TEST(head_keeps_all_its_fields)
{
    const struct head h = { .kind = HEAD_MESSAGE,
                            .flags = HEAD_APART,
                            .sequence = UINT64_C(0x0102030405060708),
                            .type = -5,
                            .count = 77,
                            .id = INT64_MIN,
                            .length = UINT64_MAX,
                            .list_len = 3,
                            .cookie = { 1, 2, 3, [HEAD_COOKIE_LEN - 1] = 255 } };
    unsigned char wire[HEAD_LEN];
    struct head got;
    tenrec_error err;

    head_write(wire, &h);
    assert_status(head_read(wire, sizeof wire, &got, &err), &err);
    assert_int_equal(got.kind, h.kind);
    assert_int_equal(got.flags, h.flags);
    assert_true(got.sequence == h.sequence);
    assert_int_equal(got.type, h.type);
    assert_int_equal(got.count, h.count);
    assert_true(got.id == h.id);
    assert_true(got.length == h.length);
    assert_true(got.list_len == h.list_len);
    assert_memory_equal(got.cookie, h.cookie, sizeof h.cookie);
}

TEST(head_refuses_other_lengths_magics_versions_kinds_and_flags)
{
    static const struct {
        size_t at;
        unsigned char value;
    } change[] = {
        { 0, 0 }, { 3, 0 }, { 4, 1 }, { 5, 0 }, { 5, HEAD_PROOF + 1 }, { 6, 2 }, { 7, 1 }
    };
    const struct head h = { .kind = HEAD_HELLO };
    unsigned char wire[HEAD_LEN + 1] = { 0 };
    struct head got;
    tenrec_error err;

    head_write(wire, &h);
    assert_int_equal(head_read(wire, HEAD_LEN - 1, &got, &err), TENREC_EPROTOCOL);
    assert_int_equal(head_read(wire, HEAD_LEN + 1, &got, &err), TENREC_EPROTOCOL);
    assert_int_equal(head_read(NULL, 0, &got, &err), TENREC_EPROTOCOL);
    for (size_t i = 0; i < sizeof change / sizeof change[0]; i++) {
        head_write(wire, &h);
        wire[change[i].at] = change[i].value;
        assert_int_equal(head_read(wire, HEAD_LEN, &got, &err), TENREC_EPROTOCOL);
    }
}

TEST(head_cookies_match_when_all_their_bits_do)
{
    unsigned char a[HEAD_COOKIE_LEN] = { 7 }, b[HEAD_COOKIE_LEN] = { 7 };

    assert_true(head_cookies_match(a, b));
    for (int bit = 0; bit < HEAD_COOKIE_LEN * 8; bit++) {
        b[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_false(head_cookies_match(a, b));
        b[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
}

TEST(head_keeps_all_of_a_tensor)
{
    tenrec_error err;

    assert_status(read_back(&good, 0, true, SIZE_MAX, &err), &err);
    assert_int_equal(slot[0].bytes, 100);
    assert_int_equal(slot[0].byte_offset, 4);
    assert_memory_equal(&slot[0].dtype, &good.dtype, sizeof good.dtype);
    assert_int_equal(slot[0].flags, good.flags);
    assert_int_equal(slot[0].source.kind, TENREC_CPU);
    assert_memory_equal(slot[0].shape, good.shape, 16);
    assert_memory_equal(slot[0].strides, good.strides, 16);
}

TEST(head_refuses_a_tensor_that_is_cut_short)
{
    tenrec_error err;

    for (size_t room = 0; room < head_tensor_len(&good); room++)
        assert_int_equal(read_back(&good, 0, false, room, &err), TENREC_EPROTOCOL);
}

TEST(head_refuses_a_view_beyond_its_storage)
{
    struct tenrec_tensor_desc t = good;

    t.bytes = 4 + (2 * 8 + 3 * 2 + 1) * 4 - 1; /* one byte too few */
    assert_refused(t, false);
    t = good;
    t.byte_offset = 101;
    assert_refused(t, false);
    t = good;
    t.shape[0] = INT64_MAX;
    t.strides[0] = INT64_MAX;
    assert_refused(t, false);
    t = good;
    t.shape[0] = -1;
    assert_refused(t, false);
    t = good;
    t.strides[1] = -1;
    assert_refused(t, false);
    t = good;
    t.dtype.bits = 0;
    assert_refused(t, false);
}

TEST(head_refuses_a_tensor_apart_that_has_no_bytes)
{
    struct tenrec_tensor_desc t = good;

    t.bytes = t.byte_offset = 0;
    t.shape[0] = 0;
    assert_refused(t, true);
}

TEST(head_lets_tensors_share_the_storage_of_an_earlier_one_only)
{
    struct tenrec_tensor_desc t = good;
    tenrec_error err;

    t.same_storage = 1;
    assert_refused(t, false); /* it is the first */
    assert_status(read_back(&good, 0, false, SIZE_MAX, &err), &err);
    assert_status(read_back(&t, 1, false, SIZE_MAX, &err), &err);
    assert_int_equal(read_back(&t, 1, true, SIZE_MAX, &err), TENREC_EPROTOCOL);
    t.bytes++;
    assert_int_equal(read_back(&t, 1, false, SIZE_MAX, &err), TENREC_EPROTOCOL);
    t.bytes--;
    t.same_storage = 2;
    assert_int_equal(read_back(&t, 1, false, SIZE_MAX, &err), TENREC_EPROTOCOL);
}
