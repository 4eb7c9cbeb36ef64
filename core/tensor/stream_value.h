/* SPDX-License-Identifier: Apache-2.0 */
/* stream_value.h - the streams on which a value is ready. */
#ifndef TENREC_TENSOR_STREAM_VALUE_H
#define TENREC_TENSOR_STREAM_VALUE_H

#include <tenrec/value.h>

#include "tensor/stream.h"

/* Has it tensors on devices? */
bool value_on_devices(const struct tenrec_value *v);

/* The streams on which its tensors became ready by themselves: those of a message
 * that came. NULL: none of it is on a device, or no memory. */
struct streams *value_streams(const struct tenrec_value *v);

/* The same for a value that this thread hands over: streams of the pool that wait
 * for its current ones, and for the tensors' own. *ret NULL: none is on a device.
 * errors: ENOMEM, EUNSUPPORTED, the driver's */
tenrec_status value_hand_over(const struct tenrec_value *v, struct streams **ret,
                              tenrec_error *err);

/* This thread takes it: its current streams wait for `ready`, and the tensors are
 * used there. `v` may be NULL. */
tenrec_status value_take(const struct tenrec_value *v, struct streams *ready, tenrec_error *err);

/* The same for code that runs on `s` (NULL: this thread's), with all streams of `ready`
 * (NULL: none): an object may use any of them. */
tenrec_status value_take_on(const struct tenrec_value *v, struct streams *ready, struct streams *s,
                            tenrec_error *err);

/* Makes `s`, of a call, wait for what this thread has queued for `v`. */
tenrec_status value_order(const struct tenrec_value *v, struct streams *s, tenrec_error *err);

/* A set for code that takes a value ready on `ready`: a stream of the pool for each,
 * others when they are asked for. NULL: no memory. */
struct streams *streams_fork(struct streams *ready);

/* A device of `v` that is none of `device`; false: all are. */
bool value_strays(const struct tenrec_value *v, const struct tenrec_device *device, size_t n,
                  struct tenrec_device *ret);

#endif
