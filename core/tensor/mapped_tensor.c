/* SPDX-License-Identifier: Apache-2.0 */
/* mapped_tensor.c - a tensor whose storage is memory of another process. */
#include "core/tensor/tensor.h"

#include "core/tensor/mapping.h"
#include "core/tensor/sharing.h"

static void mapped_tensor_free(void *arg, void *data)
{
    (void)data;
    mapping_count_tensor(false);
    mapping_drop(arg);
}

tenrec_status mapped_tensor_new(struct tenrec_mapping *m, const struct tenrec_tensor_desc *desc,
                                struct tenrec_tensor **ret, tenrec_error *err)
{
    struct tenrec_tensor_desc d = *desc;
    tenrec_status st;

    d.data = m->data;
    d.mapping = NULL;
    if (!mapping_is_writable(m))
        d.flags |= TENREC_TENSOR_READ_ONLY;
    st = tensor_from_desc(&d, mapped_tensor_free, m, ret, err);
    if (st == TENREC_OK)
        mapping_count_tensor(true);
    return st;
}
