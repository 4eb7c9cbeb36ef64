/* SPDX-License-Identifier: Apache-2.0 */
/* stream_value.h - the streams on which a value is ready. */
#ifndef TENREC_VALUE_STREAM_VALUE_H
#define TENREC_VALUE_STREAM_VALUE_H

#include <tenrec/value.h>

#include "core/tensor/stream.h"

/* Returns true if `v` has tensors on devices. */
bool value_on_devices(const struct tenrec_value *v);

/* Returns the tensors' own streams, on which those of a received message are ready. NULL: no
 * tensor is on a device, or no memory. */
struct streams *value_streams(const struct tenrec_value *v);

/* The same for a value that this thread hands over: streams of the pool that wait for the
 * thread's current streams, and for the tensors' own. *ret NULL: no tensor is on a device.
 * errors: ENOMEM, EUNSUPPORTED, the driver's */
tenrec_status value_hand_over(const struct tenrec_value *v, struct streams **ret,
                              tenrec_error *err);

/* Makes this thread's current streams wait for `ready`, and records them as users of the
 * tensors. `v` may be NULL. */
tenrec_status value_take(const struct tenrec_value *v, struct streams *ready, tenrec_error *err);

/* The same for code that runs on `s` (NULL: this thread's), with all streams of `ready`
 * (NULL: none): an object may use any of them. */
tenrec_status value_take_on(const struct tenrec_value *v, struct streams *ready, struct streams *s,
                            tenrec_error *err);

/* Makes `s`, of a call, wait for this thread's current streams and the streams of `v`. */
tenrec_status value_order(const struct tenrec_value *v, struct streams *s, tenrec_error *err);

/* Makes a set for code that uses a value ready on `ready`: a stream of the pool for each
 * device, further ones on demand. NULL: no memory. */
struct streams *streams_fork(struct streams *ready);

/* Returns true, with the device, if a tensor of `v` is on a device that is not in `device`. */
bool value_strays(const struct tenrec_value *v, const struct tenrec_device *device, size_t n,
                  struct tenrec_device *ret);

#endif
