/* SPDX-License-Identifier: Apache-2.0 */
/* dlpack_test.c - tensors from and to other libraries. */
#include "views.h"

#include <dlpack/dlpack.h>

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
