/* SPDX-License-Identifier: Apache-2.0 */
/* future_devices.h - futures whose values are on devices. */
#ifndef TENREC_FUTURE_FUTURE_DEVICES_H
#define TENREC_FUTURE_FUTURE_DEVICES_H

#include "rpc/future/future.h"

/* Drops the streams and devices of a future. */
void future_forget_devices(struct tenrec_future *f);

/* Limits `to` to the devices of `from`. */
void future_inherit_devices(struct tenrec_future *to, const struct tenrec_future *from);

/* Runs `fn` on streams on which the value of `f` is ready. */
void future_run_on_streams(struct tenrec_future *f, tenrec_future_fn *fn, void *arg);

/* Called before the thread completes `f` with `v`; *ret are the streams on which `v` is ready.
 * errors: EDEVICE (on a device that the future excludes), and the driver's */
tenrec_status future_hand_over(const struct tenrec_future *f, const struct tenrec_value *v,
                               struct streams **ret, tenrec_error *err);

#endif
