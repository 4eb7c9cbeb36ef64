/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_test.c - shapes, views, ownership. */
#include "views.h"

#include "core/tensor/tensor.h"

#include <pthread.h>

#define N(array) (sizeof(array) / sizeof *(array))

/* ---- making ------------------------------------------------------------------ */

TEST(tensor_new_is_contiguous_and_aligned)
{
    const int64_t shape[] = { 3, 5, 2 };
    const struct tenrec_tensor_desc *d;
    struct tenrec_tensor *t = NULL;

    assert_int_equal(tenrec_tensor_new(TENREC_FLOAT64, 3, shape, &t, NULL), TENREC_OK);
    d = tenrec_tensor_desc(t);
    assert_int_equal((uintptr_t)tenrec_tensor_data(t) % 64, 0);
    assert_int_equal(tenrec_tensor_count(t), 30);
    assert_int_equal(tenrec_tensor_bytes(t), 240);
    assert_int_equal(d->bytes, 240);
    assert_int_equal(d->strides[0], 10);
    assert_int_equal(d->strides[1], 2);
    assert_int_equal(d->strides[2], 1);
    assert_int_equal(d->device.kind, TENREC_CPU);
    memset(tenrec_tensor_data(t), 0, 240);
    tenrec_tensor_drop(t);
}

TEST(tensor_new_has_one_element_for_a_scalar)
{
    struct tenrec_tensor *t = NULL;

    assert_int_equal(tenrec_tensor_new(TENREC_COMPLEX128, 0, NULL, &t, NULL), TENREC_OK);
    assert_int_equal(tenrec_tensor_count(t), 1);
    assert_int_equal(tenrec_tensor_bytes(t), 16);
    tenrec_tensor_drop(t);
}

TEST(tensor_new_is_empty_when_a_dimension_is_zero)
{
    const int64_t shape[] = { INT64_MAX, 0, INT64_MAX };
    struct tenrec_tensor *t = NULL, *same = NULL;

    assert_int_equal(tenrec_tensor_new(TENREC_INT64, 3, shape, &t, NULL), TENREC_OK);
    assert_int_equal(tenrec_tensor_count(t), 0);
    assert_int_equal(tenrec_tensor_bytes(t), 0);
    assert_int_equal(tenrec_tensor_contiguous(t, &same, NULL), TENREC_OK);
    assert_ptr_equal(t, same);
    tenrec_tensor_drop(same);
    tenrec_tensor_drop(t);
}

TEST(tensor_new_refuses_invalid_shapes)
{
    static const struct {
        struct tenrec_dtype dtype;
        uint32_t ndim;
        int64_t shape[2];
        tenrec_status status;
        const char *text;
    } table[] = {
        { { TENREC_DTYPE_FLOAT, 12, 1 }, 0, { 0 }, TENREC_EINVAL, "no such element type" },
        { { TENREC_DTYPE_FLOAT, 0, 1 }, 0, { 0 }, TENREC_EINVAL, "no such element type" },
        { { TENREC_DTYPE_FLOAT, 32, 0 }, 0, { 0 }, TENREC_EINVAL, "no such element type" },
        { { 3, 64, 1 }, 0, { 0 }, TENREC_EINVAL, "no such element type" },
        { { 200, 8, 1 }, 0, { 0 }, TENREC_EINVAL, "no such element type" },
        { { TENREC_DTYPE_INT, 8, 1 }, 17, { 0 }, TENREC_EINVAL, "17 dimensions" },
        { { TENREC_DTYPE_INT, 8, 1 }, 1, { -1 }, TENREC_EINVAL, "length -1 of dimension 0" },
        { { TENREC_DTYPE_INT, 8, 1 }, 2, { 0, -5 }, TENREC_EINVAL, "length -5 of dimension 1" },
        { { TENREC_DTYPE_INT, 8, 1 },
          2,
          { INT64_C(1) << 32, INT64_C(1) << 32 },
          TENREC_ETOOBIG,
          "too large" },
        { { TENREC_DTYPE_INT, 64, 1 }, 1, { INT64_MAX }, TENREC_ETOOBIG, "too large" },
        { { TENREC_DTYPE_INT, 8, 1 }, 1, { INT64_MAX }, TENREC_ENOMEM, "no memory" },
    };
    int64_t shape[TENREC_MAX_DIMS + 1] = { 0 };

    for (size_t i = 0; i < N(table); i++) {
        struct tenrec_tensor *t = NULL;
        tenrec_error err;

        memcpy(shape, table[i].shape, sizeof table[i].shape);
        if (tenrec_tensor_new(table[i].dtype, table[i].ndim, shape, &t, &err) != table[i].status)
            fail_msg("row %zu is not refused as it should", i);
        assert_null(t);
        if (!strstr(err.text, table[i].text))
            fail_msg("row %zu: '%s' does not say '%s'", i, err.text, table[i].text);
    }
}

TEST(tensor_from_data_frees_once_when_the_last_holder_drops)
{
    struct freed freed = { 0, NULL };
    const int64_t shape[] = { 2 };
    int32_t data[2] = { 0, 0 };
    struct tenrec_tensor *t = NULL;

    assert_int_equal(
        tensors_owned(data, sizeof data, TENREC_INT32, shape, note_free, &freed, &t, NULL),
        TENREC_OK);
    assert_ptr_equal(tenrec_tensor_share(t), t);
    tenrec_tensor_drop(t);
    assert_int_equal(freed.count, 0);
    tenrec_tensor_drop(t);
    assert_int_equal(freed.count, 1);
    assert_ptr_equal(freed.data, data);
    tenrec_tensor_drop(NULL);
}

TEST(tensor_options_are_refused_without_size_and_with_flags_on_a_device)
{
    const struct tenrec_tensor_options sizeless = { .flags = TENREC_SHARED },
                                       far = { .size = sizeof far,
                                               .flags = TENREC_SHARED,
                                               .device = { TENREC_CUDA, 0 } },
                                       defaults = { .size = sizeof defaults };
    const int64_t shape[] = { 3 };
    struct tenrec_tensor *t = NULL;
    tenrec_error err;

    assert_int_equal(tenrec_tensor_new_with(TENREC_INT32, 1, shape, &sizeless, &t, &err),
                     TENREC_EINVAL);
    assert_text_has(err.text, "size is 0, expected ");
    assert_int_equal(tenrec_tensor_new_with(TENREC_INT32, 1, shape, &far, &t, &err), TENREC_EINVAL);
    assert_text_has(err.text, "for memory of a device");
    assert_null(t);
    assert_status(tenrec_tensor_new_with(TENREC_INT32, 1, shape, &defaults, &t, &err), &err);
    assert_int_equal(tenrec_tensor_bytes(t), 12);
    tenrec_tensor_drop(t);
    assert_status(tenrec_tensor_new_with(TENREC_INT32, 1, shape, NULL, &t, &err), &err);
    tenrec_tensor_drop(t);
}

TEST(tensor_from_desc_is_of_the_host_and_row_major_when_asked)
{
    int32_t data[6] = { 0 };
    const struct tenrec_tensor_desc wide = { .data = data,
                                             .bytes = sizeof data,
                                             .dtype = TENREC_INT32,
                                             .ndim = 2,
                                             .flags = TENREC_TENSOR_ROW_MAJOR,
                                             .shape = { 2, 3 } },
                                    deep = { .data = data,
                                             .bytes = sizeof data,
                                             .dtype = TENREC_INT32,
                                             .ndim = TENREC_MAX_DIMS + 1,
                                             .flags = TENREC_TENSOR_ROW_MAJOR };
    struct tenrec_tensor *t = NULL;
    tenrec_error err;

    assert_status(tenrec_tensor_from_desc(&wide, NULL, NULL, &t, &err), &err);
    assert_int_equal(tenrec_tensor_desc(t)->strides[0], 3);
    assert_int_equal(tenrec_tensor_desc(t)->strides[1], 1);
    assert_int_equal(tenrec_tensor_desc(t)->flags, 0);
    assert_int_equal(tenrec_tensor_desc(t)->device.kind, TENREC_CPU);
    tenrec_tensor_drop(t);
    assert_int_equal(tenrec_tensor_from_desc(&deep, NULL, NULL, &t, &err), TENREC_EINVAL);
}

TEST(tensor_from_data_leaves_the_data_when_refused)
{
    struct freed freed = { 0, NULL };
    const int64_t shape[] = { 3 };
    int32_t data[2] = { 0, 0 };
    struct tenrec_tensor *t = NULL;

    assert_int_equal(
        tensors_owned(data, sizeof data, TENREC_INT32, shape, note_free, &freed, &t, NULL),
        TENREC_EINVAL);
    assert_int_equal(freed.count, 0);
}

TEST(tensor_from_data_refuses_a_view_beyond_the_storage)
{
    static const struct {
        int64_t shape[2], strides[2];
        const char *text;
    } table[] = {
        { { 2, 3 }, { 3, 2 }, "reaches beyond its storage of 24 bytes" },
        { { 7, 1 }, { 1, 1 }, "reaches beyond its storage" },
        { { 2, 2 }, { -1, 1 }, "stride -1 of dimension 0 is negative" },
        { { 2, 0 }, { 1, -1 }, "stride -1 of dimension 1 is negative" },
        { { 3, 2 }, { INT64_MAX, 1 }, "reaches beyond its storage" },
        { { 4, 4 }, { INT64_MAX, INT64_MAX }, "too large" },
    };
    int32_t data[6] = { 0 };

    for (size_t i = 0; i < N(table); i++) {
        struct tenrec_tensor *t = NULL;
        tenrec_error err;

        if (tensors_view(data, sizeof data, TENREC_INT32, 2, table[i].shape, table[i].strides, &t,
                         &err) != TENREC_EINVAL)
            fail_msg("row %zu is not refused", i);
        if (!strstr(err.text, table[i].text))
            fail_msg("row %zu: '%s' does not say '%s'", i, err.text, table[i].text);
    }
}

TEST(tensor_from_data_refuses_no_data_when_bytes_are_given)
{
    const int64_t shape[] = { 1 }, none[] = { 0 };
    struct tenrec_tensor *t = NULL;

    assert_int_equal(tensors_view(NULL, 4, TENREC_INT32, 1, shape, NULL, &t, NULL), TENREC_EINVAL);
    assert_int_equal(tensors_view(NULL, 0, TENREC_INT32, 1, none, NULL, &t, NULL), TENREC_OK);
    assert_null(tenrec_tensor_data(t));
    tenrec_tensor_drop(t);
}

static void *share_and_drop(void *arg)
{
    for (int i = 0; i < 20000; i++)
        tenrec_tensor_drop(tenrec_tensor_share(arg));
    tenrec_tensor_drop(arg);
    return NULL;
}

TEST(tensor_is_freed_once_when_shared_by_threads)
{
    struct freed freed = { 0, NULL };
    const int64_t shape[] = { 1 };
    int32_t data = 0;
    struct tenrec_tensor *t = NULL;
    pthread_t thread[4];

    assert_int_equal(
        tensors_owned(&data, sizeof data, TENREC_INT32, shape, note_free, &freed, &t, NULL),
        TENREC_OK);
    for (size_t i = 0; i < N(thread); i++)
        assert_int_equal(pthread_create(&thread[i], NULL, share_and_drop, tenrec_tensor_share(t)),
                         0);
    tenrec_tensor_drop(t);
    for (size_t i = 0; i < N(thread); i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(freed.count, 1);
}

/* ---- names ------------------------------------------------------------------------ */

TEST(tensor_dtype_has_the_name_of_torch)
{
    assert_string_equal(tenrec_dtype_name(TENREC_FLOAT32), "float32");
    assert_string_equal(tenrec_dtype_name(TENREC_BFLOAT16), "bfloat16");
    assert_string_equal(tenrec_dtype_name(TENREC_BOOL), "bool");
    assert_string_equal(tenrec_dtype_name((struct tenrec_dtype){ TENREC_DTYPE_INT, 7, 1 }), "?");
    assert_string_equal(tenrec_dtype_name((struct tenrec_dtype){ TENREC_DTYPE_FLOAT, 32, 4 }), "?");
}

/* ---- expecting ---------------------------------------------------------------- */

TEST(tensor_expect_returns_the_elements_of_a_fitting_tensor)
{
    struct tenrec_tensor *t = NULL;
    const float *data = NULL;
    size_t n = 0;
    tenrec_error err;

    assert_int_equal(tenrec_tensor_new(TENREC_FLOAT32, 2, (int64_t[]){ 2, 3 }, &t, &err),
                     TENREC_OK);
    assert_status(tenrec_tensor_expect(t, TENREC_FLOAT32, -1, &data, &n, &err), &err);
    assert_ptr_equal(data, tenrec_tensor_data(t));
    assert_int_equal(n, 6);
    assert_status(tenrec_tensor_expect(t, TENREC_FLOAT32, 2, NULL, NULL, &err), &err);
    tenrec_tensor_drop(t);
}

TEST(tensor_expect_names_what_differs)
{
    static float storage[8];
    struct tenrec_tensor *t = NULL, *view = NULL;
    const float *data = storage;
    size_t n = 1;
    tenrec_error err;

    assert_int_equal(tenrec_tensor_new(TENREC_INT32, 1, (int64_t[]){ 4 }, &t, &err), TENREC_OK);
    assert_int_equal(tenrec_tensor_expect(t, TENREC_FLOAT32, -1, &data, &n, &err), TENREC_EINVAL);
    assert_string_equal(err.text, "the tensor is int32 of [4], expected float32");
    assert_null(data);
    assert_int_equal(n, 0);
    assert_int_equal(tenrec_tensor_expect(t, TENREC_INT32, 2, &data, &n, &err), TENREC_EINVAL);
    assert_string_equal(err.text, "the tensor is int32 of [4], expected int32 of 2 dimensions");
    view = view_of(storage, sizeof storage, 1, (int64_t[]){ 4 }, (int64_t[]){ 2 });
    assert_int_equal(tenrec_tensor_expect(view, TENREC_INT32, 1, &data, &n, &err), TENREC_EINVAL);
    assert_text_has(err.text, "gaps");
    assert_int_equal(tenrec_tensor_expect(NULL, TENREC_INT32, 1, &data, &n, &err), TENREC_EINVAL);
    tenrec_tensor_drop(view);
    tenrec_tensor_drop(t);
}

TEST(dtype_equal_compares_code_bits_and_lanes)
{
    const struct tenrec_dtype two = { TENREC_DTYPE_FLOAT, 32, 2 };

    assert_true(tenrec_dtype_equal(TENREC_FLOAT32, TENREC_FLOAT32));
    assert_false(tenrec_dtype_equal(TENREC_FLOAT32, TENREC_INT32));
    assert_false(tenrec_dtype_equal(TENREC_FLOAT32, TENREC_FLOAT64));
    assert_false(tenrec_dtype_equal(TENREC_FLOAT32, two));
}
