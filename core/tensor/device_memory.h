/* SPDX-License-Identifier: Apache-2.0 */
/* device_memory.h - tensors in memory of a backend's devices. */
#ifndef TENREC_TENSOR_DEVICE_MEMORY_H
#define TENREC_TENSOR_DEVICE_MEMORY_H

#include <tenrec/device.h>

/* Makes a tensor for `desc` in memory of s->device, to be written on `s`, a stream of the
 * pool; desc->data and desc->device are ignored. errors: as tensor_for_desc,
 * EUNSUPPORTED */
tenrec_status device_tensor_for_desc(const struct tenrec_tensor_desc *desc,
                                     const struct tenrec_stream *s, struct tenrec_tensor **ret,
                                     tenrec_error *err);

/* The same on `device`, to be used on the thread's current stream there. */
tenrec_status device_tensor_new(const struct tenrec_tensor_desc *desc, struct tenrec_device device,
                                struct tenrec_tensor **ret, tenrec_error *err);

/* Returns a view of `t`, on a device, whose storage is its contiguous bytes alone; or `t`
 * itself if that would need a copy. errors: ENOMEM */
tenrec_status device_tensor_to_send(struct tenrec_tensor *t, struct tenrec_tensor **ret,
                                    tenrec_error *err);

/* Returns a view of `t` that is written, and ready, on `s`; shares t. errors: ENOMEM */
tenrec_status device_tensor_on(struct tenrec_tensor *t, const struct tenrec_stream *s,
                               struct tenrec_tensor **ret, tenrec_error *err);

/* Copies on the stream of `to` (device_tensor_on), after `from` is ready on `ready` (may
 * be NULL), and makes `ready` wait for the copy. Both tensors are on devices. */
struct streams;
tenrec_status device_tensor_copy(struct tenrec_tensor *from, struct tenrec_tensor *to,
                                 struct streams *ready, tenrec_error *err);

/* Makes `to` wait for the elements of `t`. Does nothing for a tensor in the host. */
tenrec_status device_tensor_order(const struct tenrec_tensor *t, const struct tenrec_stream *to,
                                  tenrec_error *err);

#endif
