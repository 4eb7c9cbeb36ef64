/* SPDX-License-Identifier: Apache-2.0 */
/* contiguous_test.c - views as contiguous tensors, and the bytes that are sent of them. */
#include "views.h"

#include "core/tensor/tensor.h"

TEST(tensor_contiguous_returns_the_same_tensor_when_its_storage_is_full)
{
    const int64_t shape[] = { 2, 3 };
    struct tenrec_tensor *t = NULL, *same = NULL;

    assert_int_equal(tenrec_tensor_new(TENREC_INT32, 2, shape, &t, NULL), TENREC_OK);
    assert_int_equal(tenrec_tensor_contiguous(t, &same, NULL), TENREC_OK);
    assert_ptr_equal(t, same);
    tenrec_tensor_drop(same);
    tenrec_tensor_drop(t);
}

TEST(tensor_contiguous_copies_when_transposed)
{
    int32_t data[] = { 0, 1, 2, 3, 4, 5 };
    const int32_t want[] = { 0, 3, 1, 4, 2, 5 };
    const int64_t shape[] = { 3, 2 }, strides[] = { 1, 3 };
    struct tenrec_tensor *t = view_of(data, sizeof data, 2, shape, strides), *copy = NULL;

    assert_int_equal(tenrec_tensor_contiguous(t, &copy, NULL), TENREC_OK);
    assert_memory_equal(tenrec_tensor_data(copy), want, sizeof want);
    assert_int_equal(tenrec_tensor_desc(copy)->strides[0], 2);
    tenrec_tensor_drop(copy);
    tenrec_tensor_drop(t);
}

TEST(tensor_contiguous_copies_each_row_when_the_rows_are_apart)
{
    int32_t data[] = { 0, 1, 9, 2, 3, 9, 4, 5 };
    const int32_t want[] = { 0, 1, 2, 3, 4, 5 };
    const int64_t shape[] = { 3, 2 }, strides[] = { 3, 1 };
    struct tenrec_tensor *t = view_of(data, sizeof data, 2, shape, strides), *copy = NULL;

    assert_int_equal(tenrec_tensor_contiguous(t, &copy, NULL), TENREC_OK);
    assert_memory_equal(tenrec_tensor_data(copy), want, sizeof want);
    tenrec_tensor_drop(copy);
    tenrec_tensor_drop(t);
}

TEST(tensor_contiguous_repeats_when_a_stride_is_zero)
{
    int32_t data[] = { 7, 8 };
    const int32_t want[] = { 7, 8, 7, 8 };
    const int64_t shape[] = { 2, 2 }, strides[] = { 0, 1 };
    struct tenrec_tensor *t = view_of(data, sizeof data, 2, shape, strides), *copy = NULL;

    assert_int_equal(tenrec_tensor_contiguous(t, &copy, NULL), TENREC_OK);
    assert_memory_equal(tenrec_tensor_data(copy), want, sizeof want);
    tenrec_tensor_drop(copy);
    tenrec_tensor_drop(t);
}

TEST(tensor_contiguous_copies_when_the_storage_is_longer)
{
    int32_t data[] = { 1, 2, 3 };
    const int64_t shape[] = { 2 };
    struct tenrec_tensor *t = view_of(data, sizeof data, 1, shape, NULL), *copy = NULL;

    assert_int_equal(tenrec_tensor_contiguous(t, &copy, NULL), TENREC_OK);
    assert_ptr_not_equal(copy, t);
    assert_int_equal(tenrec_tensor_desc(copy)->bytes, 8);
    assert_memory_equal(tenrec_tensor_data(copy), data, 8);
    tenrec_tensor_drop(copy);
    tenrec_tensor_drop(t);
}

TEST(tensor_contiguous_ignores_the_stride_when_a_length_is_one)
{
    int32_t data[] = { 1, 2, 3 };
    const int64_t shape[] = { 1, 3 }, strides[] = { 77, 1 };
    struct tenrec_tensor *t = view_of(data, sizeof data, 2, shape, strides), *same = NULL;

    assert_int_equal(tenrec_tensor_contiguous(t, &same, NULL), TENREC_OK);
    assert_ptr_equal(same, t);
    tenrec_tensor_drop(same);
    tenrec_tensor_drop(t);
}

/* ---- what is sent --------------------------------------------------------------- */

/* The bytes sent for the first `n` of `room` elements. */
static uint64_t sent_bytes(int64_t n, size_t room)
{
    int32_t *data = calloc(room, sizeof *data);
    struct tenrec_tensor *t, *sent = NULL;
    uint64_t bytes;

    assert_non_null(data);
    t = view_of(data, room * sizeof *data, 1, &n, NULL);
    assert_int_equal(tensor_to_send(t, &sent, NULL), TENREC_OK);
    bytes = tenrec_tensor_desc(sent)->bytes;
    tenrec_tensor_drop(sent);
    tenrec_tensor_drop(t);
    free(data);
    return bytes;
}

TEST(tensor_send_is_the_whole_storage_when_the_view_is_large_or_the_storage_small)
{
    assert_int_equal(sent_bytes(1500, 2048), 8192); /* more than half */
    assert_int_equal(sent_bytes(1, 2047), 8188);    /* below 8 KiB */
}

TEST(tensor_send_is_a_copy_when_the_view_is_a_small_part)
{
    assert_int_equal(sent_bytes(1024, 2048), 4096);
    assert_int_equal(sent_bytes(1, 2048), 4);
}

TEST(tensor_send_is_a_copy_when_the_storage_is_no_whole_number_of_elements)
{
    int32_t data[2] = { 5, 6 };
    const int64_t shape[] = { 1 };
    struct tenrec_tensor *t = view_of(data, 7, 1, shape, NULL), *sent = NULL;

    assert_int_equal(tensor_to_send(t, &sent, NULL), TENREC_OK);
    assert_int_equal(tenrec_tensor_desc(sent)->bytes, 4);
    assert_int_equal(*(int32_t *)tenrec_tensor_data(sent), 5);
    tenrec_tensor_drop(sent);
    tenrec_tensor_drop(t);
}

TEST(tensor_of_a_descriptor_has_its_own_memory)
{
    const struct tenrec_tensor_desc d = {
        .bytes = 24,
        .byte_offset = 4,
        .dtype = { TENREC_DTYPE_INT, 32, 1 },
        .ndim = 1,
        .shape = { 5 },
        .strides = { 1 },
    };
    struct tenrec_tensor *t = NULL;

    assert_int_equal(tensor_for_desc(&d, &t, NULL), TENREC_OK);
    assert_ptr_equal(tenrec_tensor_data(t), (char *)tenrec_tensor_desc(t)->data + 4);
    assert_int_equal(tenrec_tensor_desc(t)->device.kind, TENREC_CPU);
    memset(tenrec_tensor_desc(t)->data, 1, 24);
    tenrec_tensor_drop(t);
}

TEST(tensor_of_a_descriptor_is_refused_when_the_offset_is_beyond)
{
    struct tenrec_tensor_desc d = {
        .bytes = 8,
        .byte_offset = 9,
        .dtype = { TENREC_DTYPE_INT, 32, 1 },
        .ndim = 1,
        .shape = { 0 },
        .strides = { 1 },
    };
    struct tenrec_tensor *t = NULL;

    assert_int_equal(tensor_for_desc(&d, &t, NULL), TENREC_EINVAL);
    d.byte_offset = UINT64_MAX - 1;
    d.shape[0] = 1;
    assert_int_equal(tensor_for_desc(&d, &t, NULL), TENREC_EINVAL);
    d.byte_offset = 0;
    d.ndim = TENREC_MAX_DIMS + 1;
    assert_int_equal(tensor_for_desc(&d, &t, NULL), TENREC_EINVAL);
    assert_null(t);
}
