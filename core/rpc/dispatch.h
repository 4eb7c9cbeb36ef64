/* SPDX-License-Identifier: Apache-2.0 */
/* dispatch.h - serving a request. */
#ifndef TENREC_RPC_DISPATCH_H
#define TENREC_RPC_DISPATCH_H

#include <tenrec/error.h>

struct tenrec_call;
struct tenrec_worker;

/* From now on no function of `w` starts: the calls that wait for a thread are answered
 * ESHUTDOWN, and so are those that still arrive. Functions that run go on. The caller is
 * inside the worker, or the worker has stopped. */
void dispatch_stop(struct tenrec_worker *w);
/* Functions start again, in the worker's next life. */
void dispatch_resume(struct tenrec_worker *w);

/* Its arguments are there, or will not be: runs the function, or answers `why`. */
void dispatch_start(struct tenrec_call *c, const tenrec_error *why);

#endif
