/* SPDX-License-Identifier: Apache-2.0 */
/* mapped_tensor.h - a tensor whose storage is memory of another process. */
#ifndef TENREC_TENSOR_MAPPED_TENSOR_H
#define TENREC_TENSOR_MAPPED_TENSOR_H

#include <tenrec/tensor.h>

struct tenrec_mapping;

/* Makes a tensor of the mapping by `desc`; desc->bytes are all within the mapping. Takes the
 * mapping on success. errors: as tensor_from_desc */
tenrec_status mapped_tensor_new(struct tenrec_mapping *m, const struct tenrec_tensor_desc *desc,
                                struct tenrec_tensor **ret, tenrec_error *err);

#endif
