/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_expect.c - the check of a tensor before a program uses its elements through a pointer. */
#include "core/tensor/tensor.h"

#include <stdio.h>
#include <string.h>

enum { SHAPE_TEXT = 160 };

/* "[2,3]"; a length below zero is written as "*". The text of a long shape is cut. */
static void tensor_shape_text(char text[SHAPE_TEXT], uint32_t ndim, const int64_t *shape)
{
    size_t n = 1;

    text[0] = '[';
    for (uint32_t i = 0; i < ndim && n + 24 < SHAPE_TEXT; i++) {
        if (i > 0)
            text[n++] = ',';
        if (shape[i] < 0)
            text[n++] = '*';
        else
            n += (size_t)snprintf(text + n, SHAPE_TEXT - n, "%lld", (long long)shape[i]);
    }
    snprintf(text + n, SHAPE_TEXT - n, "]");
}

static tenrec_status tensor_unexpected(const struct tenrec_tensor_desc *d,
                                       const struct tensor_wanted *wanted, tenrec_error *err)
{
    char is[SHAPE_TEXT], of[SHAPE_TEXT + sizeof " of "] = "";

    tensor_shape_text(is, d->ndim, d->shape);
    if (wanted->shape) {
        memcpy(of, " of ", sizeof " of ");
        tensor_shape_text(of + strlen(of), (uint32_t)wanted->ndim, wanted->shape);
    } else if (wanted->ndim >= 0) {
        snprintf(of, sizeof of, " of %d dimension%s", wanted->ndim, wanted->ndim == 1 ? "" : "s");
    }
    return tenrec_fail(err, TENREC_EINVAL, "the tensor is %s of %s, expected %s%s",
                       tenrec_dtype_name(d->dtype), is, tenrec_dtype_name(wanted->dtype), of);
}

tenrec_status tensor_check(const struct tenrec_tensor *t, const struct tensor_wanted *wanted,
                           tenrec_error *err)
{
    const struct tenrec_tensor_desc *d = t ? tenrec_tensor_desc(t) : NULL;
    bool fits;

    if (!d)
        return tenrec_fail(err, TENREC_EINVAL, "the tensor is NULL");
    fits = tenrec_dtype_equal(d->dtype, wanted->dtype) &&
           (wanted->ndim < 0 || d->ndim == (uint32_t)wanted->ndim);
    for (uint32_t i = 0; fits && wanted->shape && i < d->ndim; i++)
        fits = wanted->shape[i] < 0 || wanted->shape[i] == d->shape[i];
    if (!fits)
        return tensor_unexpected(d, wanted, err);
    if (d->device.kind != TENREC_CPU)
        return tenrec_fail(err, TENREC_EINVAL,
                           "the tensor is in memory of a device: tenrec_tensor_to copies it");
    if (!tensor_is_contiguous(d))
        return tenrec_fail(err, TENREC_EINVAL,
                           "the tensor has gaps or another order than row-major: "
                           "tenrec_tensor_contiguous copies it");
    return TENREC_OK;
}

tenrec_status tenrec_tensor_expect(const struct tenrec_tensor *t, struct tenrec_dtype dtype,
                                   int ndim, void *ret_data, size_t *ret_n, tenrec_error *err)
{
    const struct tensor_wanted wanted = { .dtype = dtype, .ndim = ndim };
    const tenrec_status st = tensor_check(t, &wanted, err);
    void *const data = st == TENREC_OK ? tenrec_tensor_data(t) : NULL;

    if (ret_data)
        memcpy(ret_data, &data, sizeof data); /* a pointer to elements of any type */
    if (ret_n)
        *ret_n = st == TENREC_OK ? (size_t)tenrec_tensor_count(t) : 0;
    return st;
}
