/* SPDX-License-Identifier: Apache-2.0 */
/* device_memory.h - tensors in memory of a device that a backend gave. */
#ifndef TENREC_TENSOR_DEVICE_MEMORY_H
#define TENREC_TENSOR_DEVICE_MEMORY_H

#include <tenrec/device.h>

/* A tensor for `desc` in memory of s->device, to be written on `s`, which is of
 * the pool; desc->data and desc->device do not matter. errors: as tensor_for_desc,
 * EUNSUPPORTED */
tenrec_status device_tensor_for_desc(const struct tenrec_tensor_desc *desc,
                                     const struct tenrec_stream *s, struct tenrec_tensor **ret,
                                     tenrec_error *err);

/* The memory of `t` once more, contiguous bytes of a storage of its own where
 * that can be said without a copy; else as it is. Of a device. errors: ENOMEM */
tenrec_status device_tensor_to_send(struct tenrec_tensor *t, struct tenrec_tensor **ret,
                                    tenrec_error *err);

/* `t` as it may be written on `s` and is ready there; shares t. errors: ENOMEM */
tenrec_status device_tensor_on(struct tenrec_tensor *t, const struct tenrec_stream *s,
                               struct tenrec_tensor **ret, tenrec_error *err);

/* Copies on the stream of `to` (device_tensor_on), when `from` is ready on `ready` (may
 * be NULL), and makes `ready` wait for it. Both on devices. */
struct streams;
tenrec_status device_tensor_copy(struct tenrec_tensor *from, struct tenrec_tensor *to,
                                 struct streams *ready, tenrec_error *err);

/* `to` waits for the elements of `t`, and for what was queued on to's device
 * before is no matter. Nothing for a tensor in the host. */
tenrec_status device_tensor_order(const struct tenrec_tensor *t, const struct tenrec_stream *to,
                                  tenrec_error *err);

#endif
