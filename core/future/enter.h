/* SPDX-License-Identifier: Apache-2.0 */
/* enter.h - the threads that use a worker's chain, so that shutdown can wait for them. */
#ifndef TENREC_FUTURE_ENTER_H
#define TENREC_FUTURE_ENTER_H

#include <tenrec/rpc.h>

/* Around each use of the chain by a thread that does not belong to the chain. The same
 * thread leaves, and within the same delivery of a message if it entered within one.
 *
 * errors   ESHUTDOWN: the worker does not run; nothing is to be left then */
tenrec_status worker_enter(struct tenrec_worker *w, tenrec_error *err);
void worker_leave(struct tenrec_worker *w);

/* Waits for the threads that entered while the worker ran. The state forbids to enter. */
void worker_wait_until_left(struct tenrec_worker *w);

#endif
