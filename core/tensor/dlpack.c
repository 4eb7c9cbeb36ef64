/* SPDX-License-Identifier: Apache-2.0 */
/* dlpack.c - tensors from and to DLPack, without a copy. */
#include <dlpack/dlpack.h>
#include <tenrec/tensor.h>

#include <stdlib.h>

#include "core/base/memory.h"
#include "core/tensor/tensor.h"

struct dlpack_view {
    DLManagedTensor dl; /* first: the part that the other side sees */
    struct tenrec_tensor *tensor;
    int64_t shape[TENREC_MAX_DIMS];
    int64_t strides[TENREC_MAX_DIMS];
};

static void release_dl(void *arg, void *data)
{
    DLManagedTensor *dl = arg;

    (void)data;
    if (dl->deleter)
        dl->deleter(dl);
}

static tenrec_status dlpack_check(const DLTensor *from, tenrec_error *err)
{
    /* Pinned memory of CUDA is host memory. */
    if (from->device.device_type != kDLCPU && from->device.device_type != kDLCUDAHost &&
        from->device.device_type != kDLCUDA)
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "DLPack tensor is on device type %d, expected %d (CPU), %d (pinned) or "
                           "%d (CUDA)",
                           (int)from->device.device_type, (int)kDLCPU, (int)kDLCUDAHost,
                           (int)kDLCUDA);
    if (from->ndim < 0 || from->ndim > TENREC_MAX_DIMS)
        return tenrec_fail(err, TENREC_EINVAL, "DLPack tensor has %d dimensions, expected 0 to %d",
                           (int)from->ndim, TENREC_MAX_DIMS);
    if (from->ndim && !from->shape)
        return tenrec_fail(err, TENREC_EINVAL, "DLPack tensor has no shape");
    return TENREC_OK;
}

/* DLPack has no length of the storage: returns the end of the view. */
static uint64_t dlpack_reach(const struct tenrec_tensor_desc *d)
{
    uint64_t last = 0, step, end;

    for (uint32_t i = 0; i < d->ndim; i++) {
        if (d->shape[i] == 0)
            return d->byte_offset;
        /* An overflow reaches too far: tensor_from_desc refuses it. */
        if (d->shape[i] < 0 || d->strides[i] < 0 ||
            __builtin_mul_overflow((uint64_t)d->shape[i] - 1, (uint64_t)d->strides[i], &step) ||
            __builtin_add_overflow(last, step, &last))
            return 0;
    }
    if (__builtin_add_overflow(last, 1, &end) ||
        __builtin_mul_overflow(end, dtype_bytes(d->dtype), &end) ||
        __builtin_add_overflow(end, d->byte_offset, &end))
        return 0;
    return end;
}

tenrec_status tenrec_tensor_from_dlpack(DLManagedTensor *dl, struct tenrec_tensor **ret,
                                        tenrec_error *err)
{
    const DLTensor *from = &dl->dl_tensor;
    struct tenrec_tensor_desc d = { .data = from->data, .byte_offset = from->byte_offset };
    tenrec_status status = dlpack_check(from, err);

    *ret = NULL;
    if (status)
        return status;
    d.ndim = (uint32_t)from->ndim;
    d.dtype.code = from->dtype.code;
    d.dtype.bits = from->dtype.bits;
    d.dtype.lanes = from->dtype.lanes;
    d.device = d.target = (struct tenrec_device){ TENREC_CPU, 0 };
    if (from->device.device_type == kDLCUDA)
        d.device = (struct tenrec_device){ TENREC_CUDA, from->device.device_id };
    for (uint32_t i = 0; i < d.ndim; i++) {
        d.shape[i] = from->shape[i];
        if (from->strides)
            d.strides[i] = from->strides[i];
    }
    if (!from->strides)
        tensor_set_row_major(&d);
    d.bytes = dlpack_reach(&d);
    return tensor_from_desc(&d, release_dl, dl, ret, err);
}

static void view_delete(DLManagedTensor *dl)
{
    struct dlpack_view *v = (struct dlpack_view *)dl;

    tenrec_tensor_drop(v->tensor);
    free(v);
}

tenrec_status tenrec_tensor_to_dlpack(struct tenrec_tensor *t, DLManagedTensor **ret,
                                      tenrec_error *err)
{
    const struct tenrec_tensor_desc *d = tenrec_tensor_desc(t);
    struct dlpack_view *v = memory_new(1, sizeof *v);

    *ret = NULL;
    if (!v)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a DLPack view");
    for (uint32_t i = 0; i < d->ndim; i++) {
        v->shape[i] = d->shape[i];
        v->strides[i] = d->strides[i];
    }
    v->tensor = tenrec_tensor_share(t);
    v->dl = (DLManagedTensor){
        .dl_tensor = {
            .data = d->data,
            .device = { .device_type = (DLDeviceType)d->device.kind, .device_id = d->device.index },
            .ndim = (int)d->ndim,
            .dtype = { .code = d->dtype.code, .bits = d->dtype.bits, .lanes = d->dtype.lanes },
            .shape = v->shape,
            .strides = v->strides,
            .byte_offset = d->byte_offset,
        },
        .deleter = view_delete,
    };
    *ret = &v->dl;
    return TENREC_OK;
}
