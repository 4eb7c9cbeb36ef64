/* SPDX-License-Identifier: Apache-2.0 */
/* future_callbacks.h - runs the callbacks of futures that are done.
 *
 * A callback that completes other futures only adds their callbacks to a list of the thread, which
 * the outermost of them empties: a chain of any length needs the stack of one link. */
#ifndef TENREC_FUTURE_FUTURE_CALLBACKS_H
#define TENREC_FUTURE_FUTURE_CALLBACKS_H

#include "rpc/future/future.h"

/* Runs the callbacks of `f`, a NULL-terminated list that it takes; or adds them to the list of the
 * thread, or to the program's own event loop. */
void future_callbacks_start(struct tenrec_future *f, struct future_callback *first);

/* Runs a callback of a future that is done, or adds it to the list of the thread. errors: ENOMEM */
tenrec_status future_callback_now(struct tenrec_future *f, tenrec_future_fn *fn, void *arg,
                                  tenrec_error *err);

void future_callback_drop(struct tenrec_future *f, struct future_callback *c);

#endif
