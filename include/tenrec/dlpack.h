/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/dlpack.h - tensors to and from DLPack (needs <dlpack/dlpack.h>). */
#ifndef TENREC_DLPACK_H
#define TENREC_DLPACK_H

#include <dlpack/dlpack.h>
#include <tenrec/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Makes a tensor of a DLPack one, without a copy. One on a device is ordered as
 * any other: on the current stream of its sender (tenrec/device.h).
 *
 * dl       taken on success: its deleter runs when the last holder drops
 * errors   EINVAL (null data, negative strides, too many dimensions),
 *          EUNSUPPORTED (device), ENOMEM
 * source   DLManagedTensor of DLPack 0.6
 */
tenrec_status tenrec_tensor_from_dlpack(DLManagedTensor *dl, struct tenrec_tensor **ret,
                                        tenrec_error *err);

/* Makes a DLPack view that shares t; its deleter drops that share.
 *
 * errors   ENOMEM
 */
tenrec_status tenrec_tensor_to_dlpack(struct tenrec_tensor *t, DLManagedTensor **ret,
                                      tenrec_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
