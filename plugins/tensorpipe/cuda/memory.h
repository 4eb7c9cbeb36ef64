/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h - memory of devices for tensors that arrive.
 *
 * What is dropped is kept for the next tensor, in the order of streams: the next
 * one to use it waits on its device, not here. Each piece is an allocation of its
 * own, so that a peer which maps one sees no other tensor. */
#ifndef TENSORPIPE_CUDA_MEMORY_H
#define TENSORPIPE_CUDA_MEMORY_H

#include "cuda/device.h"

/* Memory that may be used on `s` at once. errors: ENOMEM, EOS */
tenrec_status device_memory_new(const struct tenrec_stream *s, uint64_t bytes, void **ret,
                                tenrec_error *err);
/* Frees the memory once the present work on `s` is complete. */
void device_memory_drop(const struct tenrec_stream *s, void *data);

/* Bytes that are kept per device at most; what is beyond goes back to the driver
 * when it is dropped. The largest of all callers' counts. */
void device_memory_keep(uint64_t bytes);
/* Gives back what is kept. */
void device_memory_trim(int index);

#endif
