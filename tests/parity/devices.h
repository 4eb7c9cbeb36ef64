/* SPDX-License-Identifier: Apache-2.0 */
/* devices.h - tensors on devices, and work on them that is done late.
 *
 * A kernel is a function of the host that runs in its place in a stream. The
 * devices are those that the backend pretends to have (inproc), or those of the
 * stand-in of libcuda: both have memory that the host can reach. */
#ifndef TESTS_PARITY_DEVICES_H
#define TESTS_PARITY_DEVICES_H

#include "parity.h"

#define CPU ((struct tenrec_device){ TENREC_CPU, 0 })
#define GPU(i) ((struct tenrec_device){ TENREC_CUDA, device_index(i) })

/* i, or one of the first devices in its place if the environment variable PARITY_DEVICES
 * says how many there are. The cases are written for four; on fewer some still hold. */
int32_t device_index(int32_t i);

/* The devices behind `t`'s worker, from now on. Before any of what follows. */
void devices_use(struct tenrec_worker *w);

/* n of float32 on `device`, all `x`, written on this thread's current stream. */
struct tenrec_tensor *vector_on(struct tenrec_device device, int64_t n, float x);

/* x + y, x * y on the device of both (fails the test or returns EINVAL when they are on
 * two), queued on the current stream. */
tenrec_status vector_add(struct tenrec_tensor *x, struct tenrec_tensor *y,
                         struct tenrec_tensor **ret, tenrec_error *err);
tenrec_status vector_multiply(struct tenrec_tensor *x, struct tenrec_tensor *y,
                              struct tenrec_tensor **ret, tenrec_error *err);
tenrec_status vector_subtract(struct tenrec_tensor *x, struct tenrec_tensor *y,
                              struct tenrec_tensor **ret, tenrec_error *err);

/* Queues: all of `t` becomes x; to[i] = from[i]. */
void vector_fill(struct tenrec_tensor *t, float x);
void vector_put(struct tenrec_tensor *to, struct tenrec_tensor *from);

/* Delays later work on the current stream of `device`. */
void device_delay(struct tenrec_device device);

/* Another stream of the device becomes the current one; the former. */
struct tenrec_stream device_switch(struct tenrec_device device);
void device_switch_back(const struct tenrec_stream *former);

/* Returns true if `t` is on `device`, and all `x` once the current stream there is done. */
void assert_vector(struct tenrec_tensor *t, struct tenrec_device device, float x);
void assert_vector_value(const struct tenrec_value *v, struct tenrec_device device, float x);

/* Blocks of device memory that are in use; -1: not known. */
int devices_live(void);

bool same_device(struct tenrec_device a, struct tenrec_device b);

#endif
