/* SPDX-License-Identifier: Apache-2.0 */
/* enter.h - counts the threads that use a worker's chain, so that shutdown can wait for them. */
#ifndef TENREC_FUTURE_ENTER_H
#define TENREC_FUTURE_ENTER_H

#include <tenrec/rpc.h>

/* Around each use of the chain by a thread that does not belong to the chain. The thread that
 * enters also leaves, and within the same delivery of a message if it entered within one.
 *
 * errors   ESHUTDOWN: the worker does not run, and was not entered */
tenrec_status worker_enter(struct tenrec_worker *w, tenrec_error *err);
void worker_leave(struct tenrec_worker *w);

/* Waits for the threads that entered while the worker ran. worker.state already refuses others. */
void worker_wait_until_left(struct tenrec_worker *w);

#endif
