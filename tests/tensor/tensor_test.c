/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_test.c - shapes, views, ownership, the bytes sent, DLPack. */
#include "../support/tensors.h"
#include "core/tensor/tensor.h"

#include "../testing.h"

#include <dlpack/dlpack.h>
#include <pthread.h>

#define N(array) (sizeof(array) / sizeof *(array))

struct freed {
    int count;
    void *data;
};

static void note_free(void *arg, void *data)
{
    struct freed *f = arg;

    f->count++;
    f->data = data;
}

static struct tenrec_tensor *view_of(void *data, uint64_t bytes, uint32_t ndim,
                                     const int64_t *shape, const int64_t *strides)
{
    struct tenrec_tensor *t = NULL;
    tenrec_error err;

    if (tensors_view(data, bytes, TENREC_INT32, ndim, shape, strides, &t, &err))
        fail_msg("%s", err.text);
    return t;
}

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

/* ---- contiguous --------------------------------------------------------------- */

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

/* ---- names ------------------------------------------------------------------------ */

TEST(tensor_dtype_has_the_name_of_torch)
{
    assert_string_equal(tenrec_dtype_name(TENREC_FLOAT32), "float32");
    assert_string_equal(tenrec_dtype_name(TENREC_BFLOAT16), "bfloat16");
    assert_string_equal(tenrec_dtype_name(TENREC_BOOL), "bool");
    assert_string_equal(tenrec_dtype_name((struct tenrec_dtype){ TENREC_DTYPE_INT, 7, 1 }), "?");
    assert_string_equal(tenrec_dtype_name((struct tenrec_dtype){ TENREC_DTYPE_FLOAT, 32, 4 }), "?");
}

/* ---- DLPack ------------------------------------------------------------------------ */

struct dl_source {
    DLManagedTensor dl;
    int64_t shape[2], strides[2];
    float data[6];
    int deleted;
};

static void dl_deleter(DLManagedTensor *dl)
{
    ((struct dl_source *)dl)->deleted++;
}

static void dl_init(struct dl_source *s)
{
    memset(s, 0, sizeof *s);
    for (int i = 0; i < 6; i++)
        s->data[i] = (float)i;
    s->shape[0] = s->strides[0] = 2;
    s->shape[1] = 2;
    s->strides[1] = 1;
    s->dl.dl_tensor.data = s->data;
    s->dl.dl_tensor.device.device_type = kDLCPU;
    s->dl.dl_tensor.ndim = 2;
    s->dl.dl_tensor.dtype.code = kDLFloat;
    s->dl.dl_tensor.dtype.bits = 32;
    s->dl.dl_tensor.dtype.lanes = 1;
    s->dl.dl_tensor.shape = s->shape;
    s->dl.dl_tensor.strides = s->strides;
    s->dl.dl_tensor.byte_offset = 8;
    s->dl.deleter = dl_deleter;
}

TEST(dlpack_in_is_not_copied_and_deleted_once)
{
    struct dl_source s;
    struct tenrec_tensor *t = NULL;

    dl_init(&s);
    assert_int_equal(tenrec_tensor_from_dlpack(&s.dl, &t, NULL), TENREC_OK);
    assert_ptr_equal(tenrec_tensor_data(t), s.data + 2);
    assert_int_equal(tenrec_tensor_desc(t)->bytes, 24);
    assert_int_equal(tenrec_tensor_count(t), 4);
    assert_int_equal(s.deleted, 0);
    tenrec_tensor_drop(t);
    assert_int_equal(s.deleted, 1);
}

TEST(dlpack_in_is_row_major_without_strides)
{
    struct dl_source s;
    struct tenrec_tensor *t = NULL;

    dl_init(&s);
    s.shape[0] = 1;
    s.shape[1] = 3;
    s.dl.dl_tensor.strides = NULL;
    assert_int_equal(tenrec_tensor_from_dlpack(&s.dl, &t, NULL), TENREC_OK);
    assert_int_equal(tenrec_tensor_desc(t)->strides[0], 3);
    assert_int_equal(tenrec_tensor_desc(t)->strides[1], 1);
    tenrec_tensor_drop(t);
}

static void dlpack_in_refuses(struct dl_source *s, tenrec_status status, const char *text)
{
    struct tenrec_tensor *t = NULL;
    tenrec_error err;

    assert_int_equal(tenrec_tensor_from_dlpack(&s->dl, &t, &err), status);
    if (!strstr(err.text, text))
        fail_msg("'%s' does not say '%s'", err.text, text);
    assert_null(t);
    assert_int_equal(s->deleted, 0);
    dl_init(s);
}

TEST(dlpack_in_refuses_invalid_tensors_and_does_not_delete_them)
{
    struct dl_source s;

    dl_init(&s);
    s.dl.dl_tensor.device.device_type = kDLVulkan;
    dlpack_in_refuses(&s, TENREC_EUNSUPPORTED, "device type 7");
    s.dl.dl_tensor.data = NULL;
    dlpack_in_refuses(&s, TENREC_EINVAL, "no data");
    s.dl.dl_tensor.shape = NULL;
    dlpack_in_refuses(&s, TENREC_EINVAL, "no shape");
    s.dl.dl_tensor.ndim = 17;
    dlpack_in_refuses(&s, TENREC_EINVAL, "17 dimensions");
    s.dl.dl_tensor.ndim = -1;
    dlpack_in_refuses(&s, TENREC_EINVAL, "-1 dimensions");
    s.strides[1] = -1;
    dlpack_in_refuses(&s, TENREC_EINVAL, "stride -1 of dimension 1");
    s.shape[0] = -2;
    dlpack_in_refuses(&s, TENREC_EINVAL, "length -2 of dimension 0");
    s.strides[0] = INT64_MAX;
    s.strides[1] = INT64_MAX;
    dlpack_in_refuses(&s, TENREC_EINVAL, "reaches beyond");
    s.dl.dl_tensor.dtype.bits = 4;
    dlpack_in_refuses(&s, TENREC_EINVAL, "no such element type");
}

TEST(dlpack_out_keeps_the_tensor_until_deleted)
{
    struct freed freed = { 0, NULL };
    const int64_t shape[] = { 2 };
    int32_t data[2] = { 3, 4 };
    struct tenrec_tensor *t = NULL;
    DLManagedTensor *dl = NULL;

    assert_int_equal(
        tensors_owned(data, sizeof data, TENREC_INT32, shape, note_free, &freed, &t, NULL),
        TENREC_OK);
    assert_int_equal(tenrec_tensor_to_dlpack(t, &dl, NULL), TENREC_OK);
    tenrec_tensor_drop(t);
    assert_int_equal(freed.count, 0);
    assert_ptr_equal(dl->dl_tensor.data, data);
    assert_int_equal(dl->dl_tensor.ndim, 1);
    assert_int_equal(dl->dl_tensor.shape[0], 2);
    assert_int_equal(dl->dl_tensor.strides[0], 1);
    assert_int_equal(dl->dl_tensor.dtype.bits, 32);
    assert_int_equal(dl->dl_tensor.device.device_type, kDLCPU);
    dl->deleter(dl);
    assert_int_equal(freed.count, 1);
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
