/* SPDX-License-Identifier: Apache-2.0 */
/* storage.c - storage classes and views. */
#include "wire/storage.h"

static const struct {
    const char *name;
    struct tenrec_dtype dtype;
} torch_classes[] = {
    { "FloatStorage", { TENREC_DTYPE_FLOAT, 32, 1 } },
    { "DoubleStorage", { TENREC_DTYPE_FLOAT, 64, 1 } },
    { "HalfStorage", { TENREC_DTYPE_FLOAT, 16, 1 } },
    { "BFloat16Storage", { TENREC_DTYPE_BFLOAT, 16, 1 } },
    { "ByteStorage", { TENREC_DTYPE_UINT, 8, 1 } },
    { "CharStorage", { TENREC_DTYPE_INT, 8, 1 } },
    { "ShortStorage", { TENREC_DTYPE_INT, 16, 1 } },
    { "IntStorage", { TENREC_DTYPE_INT, 32, 1 } },
    { "LongStorage", { TENREC_DTYPE_INT, 64, 1 } },
    { "BoolStorage", { TENREC_DTYPE_BOOL, 8, 1 } },
    { "ComplexFloatStorage", { TENREC_DTYPE_COMPLEX, 64, 1 } },
    { "ComplexDoubleStorage", { TENREC_DTYPE_COMPLEX, 128, 1 } },
};

#define N_TORCH_CLASSES (sizeof torch_classes / sizeof torch_classes[0])

bool storage_class(struct tenrec_dtype dtype, const char **ret_module,
                   char ret_name[STORAGE_CLASS_MAX])
{
    for (size_t i = 0; i < N_TORCH_CLASSES; i++) {
        const struct tenrec_dtype *d = &torch_classes[i].dtype;
        if (d->code == dtype.code && d->bits == dtype.bits && d->lanes == dtype.lanes) {
            *ret_module = "torch";
            snprintf(ret_name, STORAGE_CLASS_MAX, "%s", torch_classes[i].name);
            return true;
        }
    }
    *ret_module = STORAGE_TENREC;
    snprintf(ret_name, STORAGE_CLASS_MAX, "%u.%u.%u", (unsigned int)dtype.code,
             (unsigned int)dtype.bits, (unsigned int)dtype.lanes);
    return false;
}

/* Reads "code.bits.lanes". */
static bool parse_triple(struct nop_bytes name, struct tenrec_dtype *ret)
{
    static const uint32_t max[3] = { UINT8_MAX, UINT8_MAX, UINT16_MAX };
    uint32_t value[3] = { 0, 0, 0 };
    size_t field = 0, digits = 0;

    for (size_t i = 0; i < name.len; i++) {
        unsigned int c = name.data[i];
        if (c == '.' && digits > 0 && field < 2) {
            field++;
            digits = 0;
        } else if (c >= '0' && c <= '9') {
            value[field] = value[field] * 10 + (c - '0');
            digits++;
            if (value[field] > max[field])
                return false;
        } else {
            return false;
        }
    }
    *ret = (struct tenrec_dtype){ (uint8_t)value[0], (uint8_t)value[1], (uint16_t)value[2] };
    return field == 2 && digits > 0 && storage_element_bytes(*ret) > 0;
}

bool storage_dtype(struct nop_bytes module, struct nop_bytes name, struct tenrec_dtype *ret)
{
    if (nop_bytes_is(module, STORAGE_TENREC))
        return parse_triple(name, ret);
    if (!nop_bytes_is(module, "torch"))
        return false;
    for (size_t i = 0; i < N_TORCH_CLASSES; i++)
        if (nop_bytes_is(name, torch_classes[i].name)) {
            *ret = torch_classes[i].dtype;
            return true;
        }
    return false;
}

uint32_t storage_element_bytes(struct tenrec_dtype dtype)
{
    uint32_t bits = (uint32_t)dtype.bits * dtype.lanes;

    return bits % 8 == 0 ? bits / 8 : 0;
}

/* The elements that the storage must hold for this view, from its start. */
static bool elements_needed(const struct tenrec_tensor_desc *desc, uint64_t *ret)
{
    uint64_t last = 0, step;

    *ret = 0;
    for (uint32_t d = 0; d < desc->ndim; d++)
        if (desc->shape[d] == 0)
            return true;
    for (uint32_t d = 0; d < desc->ndim; d++)
        if (__builtin_mul_overflow((uint64_t)desc->shape[d] - 1, (uint64_t)desc->strides[d],
                                   &step) ||
            __builtin_add_overflow(last, step, &last))
            return false;
    return !__builtin_add_overflow(last, 1, ret);
}

tenrec_status storage_check_view(const struct tenrec_tensor_desc *desc, tenrec_status code,
                                 tenrec_error *err)
{
    uint32_t element = storage_element_bytes(desc->dtype);
    uint64_t elements, bytes;

    for (uint32_t d = 0; d < desc->ndim; d++)
        if (desc->shape[d] < 0 || desc->strides[d] < 0)
            return tenrec_fail(err, code,
                               "dimension %u has size %lld and stride %lld: expected none below 0",
                               d, (long long)desc->shape[d], (long long)desc->strides[d]);
    if (!elements_needed(desc, &elements) || __builtin_mul_overflow(elements, element, &bytes) ||
        __builtin_add_overflow(bytes, desc->byte_offset, &bytes))
        return tenrec_fail(err, code, "its sizes and strides cannot be counted");
    if (bytes > desc->bytes)
        return tenrec_fail(err, code, "its view ends at byte %llu of a storage of %llu",
                           (unsigned long long)bytes, (unsigned long long)desc->bytes);
    return TENREC_OK;
}

uint64_t storage_view_bytes(const struct tenrec_tensor_desc *desc)
{
    uint64_t bytes = storage_element_bytes(desc->dtype);

    for (uint32_t d = 0; d < desc->ndim; d++)
        if (desc->shape[d] == 0)
            return 0;
    for (uint32_t d = 0; d < desc->ndim; d++)
        if (__builtin_mul_overflow(bytes, (uint64_t)desc->shape[d], &bytes))
            return UINT64_MAX;
    return bytes;
}
