/* SPDX-License-Identifier: Apache-2.0 */
/* tensorlist_test.c - the pickle of the tensor list: torch's own bytes, and ours. */
#include "pickled.h"

/* Written by torch 1.13: a 2 x 2; a view from element 3 with
 * stride 1; an expanded one with stride 0 and another that requires grad. */
static const char float2x2[] =
    BEGIN TENSOR0 CLASS_FLOAT KEY0_CPU "4b04745171064b00284b024b0274284b024b017489" HOOKS;
static const char view[] =
    BEGIN TENSOR0 CLASS_FLOAT KEY0_CPU "4b0a745171064b03284b0274284b017489" HOOKS;
static const char expanded[] =
    BEGIN TENSOR0 CLASS_FLOAT KEY0_CPU "4b01745171064b00284b0274284b007489" HOOKS;
static const char with_grad[] =
    BEGIN TENSOR0 CLASS_FLOAT KEY0_CPU "4b02745171064b00284b0274284b017488" HOOKS;
static const char no_elements[] =
    BEGIN TENSOR0 CLASS_FLOAT KEY0_CPU "4b00745171064b00284b0074284b017489" HOOKS;
/* Written by torch 1.13: a 3 x 2 view of a 2 x 3 storage of each dtype in the
 * order below, then a float scalar, then 300 x 70000 bytes. */
static const char all_dtypes[] =
    "800263746f7263682e6a69742e5f7069636b6c650a6275696c645f74656e736f726c6973740a7100285d2863746f"
    "7263682e5f7574696c730a5f72656275696c645f74656e736f725f76320a71012828580700000073746f72616765"
    "710263746f7263680a466c6f617453746f726167650a71035801000000307104580300000063707571054b067451"
    "71064b00284b034b0274284b014b03748963636f6c6c656374696f6e730a4f726465726564446963740a71072952"
    "7452710868012828680263746f7263680a446f75626c6553746f726167650a7109580100000031710a68054b0674"
    "51710b4b00284b034b0274284b014b037489680729527452710c68012828680263746f7263680a48616c6653746f"
    "726167650a710d580100000032710e68054b067451710f4b00284b034b0274284b014b0374896807295274527110"
    "68012828680263746f7263680a42466c6f6174313653746f726167650a7111580100000033711268054b06745171"
    "134b00284b034b0274284b014b037489680729527452711468012828680263746f7263680a4279746553746f7261"
    "67650a7115580100000034711668054b06745171174b00284b034b0274284b014b03748968072952745271186801"
    "2828680263746f7263680a4368617253746f726167650a7119580100000035711a68054b067451711b4b00284b03"
    "4b0274284b014b037489680729527452711c68012828680263746f7263680a53686f727453746f726167650a711d"
    "580100000036711e68054b067451711f4b00284b034b0274284b014b037489680729527452712068012828680263"
    "746f7263680a496e7453746f726167650a7121580100000037712268054b06745171234b00284b034b0274284b01"
    "4b037489680729527452712468012828680263746f7263680a4c6f6e6753746f726167650a712558010000003871"
    "2668054b06745171274b00284b034b0274284b014b037489680729527452712868012828680263746f7263680a42"
    "6f6f6c53746f726167650a7129580100000039712a68054b067451712b4b00284b034b0274284b014b0374896807"
    "29527452712c68012828680263746f7263680a436f6d706c6578466c6f617453746f726167650a712d5802000000"
    "3130712e68054b067451712f4b00284b034b0274284b014b037489680729527452713068012828680263746f7263"
    "680a436f6d706c6578446f75626c6553746f726167650a713158020000003131713268054b06745171334b00284b"
    "034b0274284b014b0374896807295274527134680128286802680358020000003132713568054b01745171364b00"
    "28742874896807295274527137680128286802681558020000003133713868054a406f4001745171394b00284d2c"
    "014a7011010074284a701101004b017489680729527452713a6574522e";

static struct tenrec_tensor_desc read_one(const char *text, uint64_t bytes)
{
    struct tenrec_tensor_desc tensor = { .bytes = bytes };
    tenrec_error err;

    if (read_list(text, &tensor, 1, &err))
        fail_msg("%s", err.text);
    return tensor;
}

TEST(tensorlist_reads_the_bytes_of_torch)
{
    struct tenrec_tensor_desc t = read_one(FLOAT2, 8);

    assert_int_equal(t.dtype.code, TENREC_DTYPE_FLOAT);
    assert_int_equal(t.dtype.bits, 32);
    assert_int_equal(t.dtype.lanes, 1);
    assert_int_equal(t.ndim, 1);
    assert_int_equal(t.shape[0], 2);
    assert_int_equal(t.strides[0], 1);
    assert_int_equal(t.byte_offset, 0);
    assert_int_equal(t.flags, 0);
    t = read_one(float2x2, 16);
    assert_int_equal(t.ndim, 2);
    assert_int_equal(t.shape[1], 2);
    assert_int_equal(t.strides[0], 2);
    t = read_one(view, 40);
    assert_int_equal(t.byte_offset, 12);
    t = read_one(expanded, 4);
    assert_int_equal(t.strides[0], 0);
    t = read_one(with_grad, 8);
    assert_int_equal(t.flags, TENREC_TENSOR_REQUIRES_GRAD);
    t = read_one(no_elements, 0);
    assert_int_equal(t.shape[0], 0);
}

TEST(tensorlist_recalls_names_from_the_memo)
{
    struct tenrec_tensor_desc t[2] = { { .bytes = 16 }, { .bytes = 16 } };
    tenrec_error err;

    if (read_list(LONG_AND_DOUBLE, t, 2, &err))
        fail_msg("%s", err.text);
    assert_int_equal(t[0].dtype.code, TENREC_DTYPE_INT);
    assert_int_equal(t[1].dtype.code, TENREC_DTYPE_FLOAT);
    assert_int_equal(t[1].dtype.bits, 64);
    assert_int_equal(t[1].ndim, 2);
}

TEST(tensorlist_of_none_is_the_constant)
{
    struct hex h = hex(EMPTY), wide = hex(BEGIN "65855230");
    unsigned char buf[TENSORLIST_EMPTY_LEN];
    tenrec_error err;
    size_t len;

    assert_int_equal(tensorlist_write(buf, sizeof buf, NULL, 0, 0, false, &len, &err), TENREC_OK);
    assert_int_equal(len, TENSORLIST_EMPTY_LEN);
    assert_int_equal(h.len, len);
    assert_memory_equal(buf, h.data, len);
    assert_true(tensorlist_is_empty(buf, len));
    assert_int_equal(read_exactly(tensorlist_read, buf, len, NULL, 0, &err), TENREC_OK);
    /* The same without its memo, or written by another hand, counts too. */
    assert_int_equal(read_list("800263746f7263682e6a69742e5f7069636b6c650a6275696c645f74656e736f7"
                               "26c6973740a285d286574522e",
                               NULL, 0, &err),
                     TENREC_OK);
    assert_int_equal(read_exactly(tensorlist_read, wide.data, wide.len, NULL, 0, &err),
                     TENREC_EPROTOCOL);
}

static const struct tenrec_dtype torch_dtypes[] = {
    { TENREC_DTYPE_FLOAT, 32, 1 },   { TENREC_DTYPE_FLOAT, 64, 1 },
    { TENREC_DTYPE_FLOAT, 16, 1 },   { TENREC_DTYPE_BFLOAT, 16, 1 },
    { TENREC_DTYPE_UINT, 8, 1 },     { TENREC_DTYPE_INT, 8, 1 },
    { TENREC_DTYPE_INT, 16, 1 },     { TENREC_DTYPE_INT, 32, 1 },
    { TENREC_DTYPE_INT, 64, 1 },     { TENREC_DTYPE_BOOL, 8, 1 },
    { TENREC_DTYPE_COMPLEX, 64, 1 }, { TENREC_DTYPE_COMPLEX, 128, 1 },
};
static const struct tenrec_dtype own_dtypes[] = {
    { TENREC_DTYPE_UINT, 16, 1 },  { TENREC_DTYPE_UINT, 32, 1 },
    { TENREC_DTYPE_UINT, 64, 1 },  { 10, 8, 1 },
    { TENREC_DTYPE_FLOAT, 32, 4 }, { 17, 4, 2 },
};

TEST(tensorlist_reads_every_dtype_that_torch_wrote)
{
    struct tenrec_tensor_desc t[14] = { 0 };
    tenrec_error err;

    for (int i = 0; i < 14; i++)
        t[i].bytes = i < 12    ? 6 * storage_element_bytes(torch_dtypes[i])
                     : i == 12 ? 4
                               : 300 * 70000;
    if (read_list(all_dtypes, t, 14, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < 12; i++) {
        assert_int_equal(t[i].dtype.code, torch_dtypes[i].code);
        assert_int_equal(t[i].dtype.bits, torch_dtypes[i].bits);
        assert_int_equal(t[i].shape[0], 3);
        assert_int_equal(t[i].strides[1], 3);
    }
    assert_int_equal(t[12].ndim, 0);
    assert_int_equal(t[13].shape[1], 70000);
}

static void round_trip(const struct tenrec_tensor_desc *sent, uint32_t n, bool to_tenrec)
{
    struct tenrec_tensor_desc got[16] = { 0 };
    unsigned char buf[TENSORLIST_MAX(16)];
    tenrec_error err;
    size_t len;

    for (uint32_t i = 0; i < n; i++)
        got[i].bytes = sent[i].bytes;
    if (tensorlist_write(buf, sizeof buf, sent, n, sizeof *sent, to_tenrec, &len, &err) ||
        read_exactly(tensorlist_read, buf, len, got, n, &err))
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(got[i].dtype.code, sent[i].dtype.code);
        assert_int_equal(got[i].dtype.bits, sent[i].dtype.bits);
        assert_int_equal(got[i].dtype.lanes, sent[i].dtype.lanes);
        assert_int_equal(got[i].ndim, sent[i].ndim);
        assert_int_equal(got[i].byte_offset, sent[i].byte_offset);
        assert_int_equal(got[i].flags, sent[i].flags);
        assert_memory_equal(got[i].shape, sent[i].shape, sizeof sent[i].shape);
        assert_memory_equal(got[i].strides, sent[i].strides, sizeof sent[i].strides);
    }
}

TEST(tensorlist_carries_every_dtype_of_torch)
{
    struct tenrec_tensor_desc sent[12];

    for (int i = 0; i < 12; i++)
        sent[i] = matrix(torch_dtypes[i]);
    round_trip(sent, 12, false);
}

TEST(tensorlist_carries_other_dtypes_between_tenrec_peers_only)
{
    struct tenrec_tensor_desc sent[6];
    unsigned char buf[TENSORLIST_MAX(1)];
    tenrec_error err;
    size_t len;

    for (int i = 0; i < 6; i++) {
        sent[i] = matrix(own_dtypes[i]);
        assert_int_equal(
            tensorlist_write(buf, sizeof buf, &sent[i], 1, sizeof sent[0], false, &len, &err),
            TENREC_EUNSUPPORTED);
        assert_text_has(err.text, "tensor 0: a torch peer cannot carry dtype code");
    }
    round_trip(sent, 6, true);
}

TEST(tensorlist_refuses_dtypes_without_whole_bytes)
{
    struct tenrec_tensor_desc sent = matrix((struct tenrec_dtype){ TENREC_DTYPE_INT, 4, 1 });
    unsigned char buf[TENSORLIST_MAX(1)];
    tenrec_error err;
    size_t len;

    assert_int_equal(tensorlist_write(buf, sizeof buf, &sent, 1, sizeof sent, true, &len, &err),
                     TENREC_EUNSUPPORTED);
    assert_text_has(err.text, "the wire cannot carry dtype code 0, 4 bits, 1 lanes");
}

TEST(tensorlist_carries_scalars_and_all_dimensions)
{
    struct tenrec_tensor_desc sent[3] = { matrix(torch_dtypes[0]), matrix(torch_dtypes[0]),
                                          matrix(torch_dtypes[4]) };

    sent[0].ndim = 0;
    memset(sent[0].shape, 0, sizeof sent[0].shape);
    memset(sent[0].strides, 0, sizeof sent[0].strides);
    sent[1].ndim = TENREC_MAX_DIMS;
    sent[1].bytes = (uint64_t)1 << 50;
    sent[1].byte_offset = (uint64_t)1 << 40;
    for (int d = 0; d < TENREC_MAX_DIMS; d++) {
        sent[1].shape[d] = 2;
        sent[1].strides[d] = (int64_t)1 << (2 * d);
    }
    sent[2].bytes = (uint64_t)INT32_MAX + 1;
    round_trip(sent, 3, false);
}

TEST(tensorlist_fits_its_maximum)
{
    struct tenrec_tensor_desc sent = matrix(own_dtypes[0]);
    unsigned char buf[TENSORLIST_MAX(1)];
    tenrec_error err;
    size_t len;

    sent.ndim = TENREC_MAX_DIMS;
    sent.device = (struct tenrec_device){ TENREC_CUDA, INT32_MAX };
    sent.bytes = INT64_MAX;
    sent.byte_offset = INT64_MAX / 2;
    for (int d = 0; d < TENREC_MAX_DIMS; d++) {
        sent.shape[d] = d == 0 ? 0 : INT64_MAX;
        sent.strides[d] = INT64_MAX;
    }
    sent.byte_offset &= ~(uint64_t)1;
    if (tensorlist_write(buf, sizeof buf, &sent, 1, sizeof sent, true, &len, &err))
        fail_msg("%s", err.text);
    assert_int_equal(tensorlist_write(buf, len - 1, &sent, 1, sizeof sent, true, &len, &err),
                     TENREC_ETOOBIG);
}

TEST(tensorlist_refuses_to_write_a_view_that_leaves_its_storage)
{
    struct tenrec_tensor_desc sent = matrix(torch_dtypes[0]);
    unsigned char buf[TENSORLIST_MAX(1)];
    tenrec_error err;
    size_t len;

#define REFUSES(change, says)                                                                      \
    do {                                                                                           \
        sent = matrix(torch_dtypes[0]);                                                            \
        change;                                                                                    \
        assert_int_equal(                                                                          \
            tensorlist_write(buf, sizeof buf, &sent, 1, sizeof sent, false, &len, &err),           \
            TENREC_EINVAL);                                                                        \
        assert_text_has(err.text, says);                                                           \
    } while (0)
    REFUSES(sent.shape[0] = 300, "its view ends at byte 84280 of a storage of 84000");
    REFUSES(sent.shape[0] = -1, "dimension 0 has size -1");
    REFUSES(sent.strides[1] = -1, "dimension 1 has size 70 and stride -1");
    REFUSES(sent.byte_offset = 2, "not a multiple of 4");
    REFUSES(sent.ndim = TENREC_MAX_DIMS + 1, "17 dimensions");
    REFUSES((sent.shape[0] = INT64_MAX, sent.strides[0] = INT64_MAX), "cannot be counted");
#undef REFUSES
    sent = matrix(torch_dtypes[0]);
    sent.device.kind = 77;
    assert_int_equal(tensorlist_write(buf, sizeof buf, &sent, 1, sizeof sent, false, &len, &err),
                     TENREC_EUNSUPPORTED);
}

TEST(tensorlist_reads_many_tensors)
{
    enum { N = 3000 };
    struct tenrec_tensor_desc *tensors = calloc(N, sizeof *tensors);
    unsigned char *buf = malloc(TENSORLIST_MAX(N));
    tenrec_error err;
    size_t len;

    assert_non_null(tensors);
    assert_non_null(buf);
    for (int i = 0; i < N; i++)
        tensors[i] = matrix(torch_dtypes[i % 12]);
    if (tensorlist_write(buf, TENSORLIST_MAX(N), tensors, N, sizeof *tensors, false, &len, &err) ||
        read_exactly(tensorlist_read, buf, len, tensors, N, &err))
        fail_msg("%s", err.text);
    assert_int_equal(tensors[N - 1].dtype.code, torch_dtypes[(N - 1) % 12].code);
    free(tensors);
    free(buf);
}
