/* SPDX-License-Identifier: Apache-2.0 */
/* future_inside.h - what the files of futures share: the callbacks of futures that are done, and
 * futures whose values are on devices. */
#ifndef TENREC_FUTURE_FUTURE_INSIDE_H
#define TENREC_FUTURE_FUTURE_INSIDE_H

#include "rpc/future/future.h"

/* ---- future_callbacks.c: a callback that completes other futures only adds their callbacks to a
 * list of the thread, which the outermost of them empties: a chain of any length needs the stack of
 * one link --------------------------------------------------------------------------------------
 */

/* Runs the callbacks of `f`, a NULL-terminated list that it takes; or adds them to the list of the
 * thread, or to the program's own event loop. */
void future_callbacks_start(struct tenrec_future *f, struct future_callback *first);

/* Runs a callback of a future that is done, or adds it to the list of the thread. errors: ENOMEM */
tenrec_status future_callback_now(struct tenrec_future *f, tenrec_future_fn *fn, void *arg,
                                  tenrec_error *err);

void future_callback_drop(struct tenrec_future *f, struct future_callback *c);

/* ---- future_devices.c -------------------------------------------------------------------------
 */

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
