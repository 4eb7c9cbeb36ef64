/* SPDX-License-Identifier: Apache-2.0 */
/* future_devices.h - futures whose values are on devices. */
#ifndef TENREC_FUTURE_FUTURE_DEVICES_H
#define TENREC_FUTURE_FUTURE_DEVICES_H

#include "future/future.h"

/* Drops what a future knows of streams and devices. */
void future_forget_devices(struct tenrec_future *f);

/* `to` may have the same devices as `from` only. */
void future_inherit_devices(struct tenrec_future *to, const struct tenrec_future *from);

/* Runs fn with streams of its own, on which the value of `f` is ready. */
void future_run_on_streams(struct tenrec_future *f, tenrec_future_fn *fn, void *arg);

/* This thread is about to complete `f` with `v`: *ret is what it is ready on then.
 * errors: EDEVICE (on a device that is none of the future's), and the driver's */
tenrec_status future_hand_over(const struct tenrec_future *f, const struct tenrec_value *v,
                               struct streams **ret, tenrec_error *err);

#endif
