/* SPDX-License-Identifier: Apache-2.0 */
/* tensorlist_views_test.c - lists with several views of one storage. */
#include "pickled.h"

/* Written by torch 1.13 for the arguments t and t[1:3] of four floats; the message carries
 * one storage. */
#define TWO_VIEWS_BEGIN BEGIN TENSOR0 CLASS_FLOAT KEY0_CPU "4b04745171064b00284b0474284b017489"
static const char two_views[] =
    TWO_VIEWS_BEGIN "63636f6c6c656374696f6e730a4f726465726564446963740a710729527452710868012868064b"
                    "01284b0274284b01748968072952745271096574522e";

static void check_two_views(const struct tenrec_tensor_desc *t)
{
    assert_int_equal(t[0].same_storage, 0);
    assert_int_equal(t[0].shape[0], 4);
    assert_int_equal(t[1].same_storage, 1);
    assert_int_equal(t[1].bytes, 16);
    assert_int_equal(t[1].byte_offset, 4);
    assert_int_equal(t[1].shape[0], 2);
    assert_int_equal(t[1].dtype.code, TENREC_DTYPE_FLOAT);
}

TEST(tensorlist_reads_two_views_of_one_storage_that_torch_wrote)
{
    struct hex h = hex(two_views);
    struct tenrec_tensor_desc t[2] = { 0 };
    struct carried carried = { .bytes = 16 };
    tenrec_error err;
    uint32_t n;

    if (read_views(tensorlist_read, h.data, h.len, &carried, 1, t, 2, &n, &err))
        fail_msg("%s", err.text);
    assert_int_equal(n, 2);
    assert_int_equal(carried.tensor, 0);
    check_two_views(t);
}

TEST(tensorlist_counts_the_views_that_find_no_room)
{
    struct hex h = hex(two_views);
    struct tenrec_tensor_desc t[1] = { 0 };
    struct carried carried = { .bytes = 16 };
    tenrec_error err;
    uint32_t n;

    if (read_views(tensorlist_read, h.data, h.len, &carried, 1, t, 1, &n, &err))
        fail_msg("%s", err.text);
    assert_int_equal(n, 2);
    carried.bytes = 11; /* the second view ends at 12, the first storage at 16 */
    assert_int_equal(read_views(tensorlist_read, h.data, h.len, &carried, 1, t, 1, &n, &err),
                     TENREC_EPROTOCOL);
}

/* Two storages of 16 bytes with two views each, in turns. */
TEST(tensorlist_carries_views_of_one_storage_between_others)
{
    struct tenrec_tensor_desc sent[4], got[4] = { 0 };
    struct carried carried[2] = { { .bytes = 16 }, { .bytes = 16 } };
    unsigned char buf[TENSORLIST_MAX(4)];
    tenrec_error err;
    uint32_t n = 0;
    size_t len;

    for (int i = 0; i < 4; i++)
        sent[i] =
            (struct tenrec_tensor_desc){ .bytes = 16,
                                         .byte_offset = i < 2 ? 0 : 4,
                                         .dtype = { i % 2 ? TENREC_DTYPE_INT : TENREC_DTYPE_FLOAT,
                                                    32, 1 },
                                         .ndim = 1,
                                         .device = { TENREC_CPU, 0 },
                                         .shape = { 3 },
                                         .strides = { 1 },
                                         .same_storage = i < 2 ? 0 : (uint64_t)i - 1 };
    if (tensorlist_write(buf, sizeof buf, sent, 4, sizeof *sent, false, &len, &err) ||
        read_views(tensorlist_read, buf, len, carried, 2, got, 4, &n, &err))
        fail_msg("%s", err.text);
    assert_int_equal(n, 4);
    assert_int_equal(carried[1].tensor, 1);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(got[i].same_storage, sent[i].same_storage);
        assert_int_equal(got[i].byte_offset, sent[i].byte_offset);
        assert_int_equal(got[i].dtype.code, sent[i].dtype.code);
    }
}

TEST(tensorlist_refuses_another_use_of_the_memo_than_torchs)
{
    /* In the place of "h6", which recalls the storage. */
    static const struct {
        const char *begin, *operation, *says;
    } bad[] = {
        { TWO_VIEWS_BEGIN, "6805", "expected storage, offset" }, /* "cpu" */
        { TWO_VIEWS_BEGIN, "6804", "memo 4" },                   /* the key, which is not kept */
        { TWO_VIEWS_BEGIN, "6a06000001", "memo 16777222" },
        { TWO_VIEWS_BEGIN, "68067109", "one memo per storage" },
        { TWO_VIEWS_BEGIN, "68067106", "one memo per storage" },
        { TWO_VIEWS_BEGIN, "68057106", "expected storage, offset" },
        { TWO_VIEWS_BEGIN, "68057105", "memo 5 twice" },
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[1024];

        snprintf(text, sizeof text,
                 "%s63636f6c6c656374696f6e730a4f726465726564446963740a71072952745271086801"
                 "28%s4b01284b0274284b01748968072952745271096574522e",
                 bad[i].begin, bad[i].operation);
        check_refused(text, 16, 1, TENREC_EPROTOCOL, bad[i].says);
    }
}

TEST(tensorlist_bounds_the_views_of_a_storage)
{
    enum { N = 5000 }; /* of 4096 */
    struct tenrec_tensor_desc *sent = calloc(N, sizeof *sent);
    struct carried carried = { .bytes = 4 };
    unsigned char *buf = malloc(TENSORLIST_MAX(N));
    tenrec_error err;
    uint32_t n;
    size_t len;

    assert_non_null(sent);
    assert_non_null(buf);
    for (int i = 0; i < N; i++)
        sent[i] = (struct tenrec_tensor_desc){ .bytes = 4,
                                               .dtype = { TENREC_DTYPE_FLOAT, 32, 1 },
                                               .device = { TENREC_CPU, 0 },
                                               .same_storage = i > 0 };
    if (tensorlist_write(buf, TENSORLIST_MAX(N), sent, N, sizeof *sent, false, &len, &err))
        fail_msg("%s", err.text);
    assert_int_equal(read_views(tensorlist_read, buf, len, &carried, 1, sent, 1, &n, &err),
                     TENREC_ETOOBIG);
    assert_text_has(err.text, "more than 4096 tensors");
    free(sent);
    free(buf);
}
