/* SPDX-License-Identifier: Apache-2.0 */
/* dispatch.h - serving a request. */
#ifndef TENREC_SERVE_DISPATCH_H
#define TENREC_SERVE_DISPATCH_H

#include <tenrec/agent.h>

struct tenrec_call;
struct tenrec_worker;

/* Serves a message of one type. Takes msg. */
typedef void dispatch_fn(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg);

enum { DISPATCH_HANDLERS_MAX = 8 };

/* The types of messages that are neither calls nor answers of calls: the part of the worker
 * that serves a type registers its handler before the worker starts. */
struct dispatch {
    struct dispatch_handler {
        int32_t type;
        dispatch_fn *fn;
    } handler[DISPATCH_HANDLERS_MAX];
    unsigned n;
};

void dispatch_handle(struct dispatch *d, int32_t type, dispatch_fn *fn);

/* From now on no function of `w` starts: the calls that wait for a thread are answered
 * ESHUTDOWN, and so are those that still arrive. Functions that run go on. The caller is
 * inside the worker, or the worker has stopped. */
void dispatch_stop(struct tenrec_worker *w);
/* Functions start again, in the worker's next life. */
void dispatch_resume(struct tenrec_worker *w);

/* Its arguments are there, or will not be: runs the function, or answers `why`. */
void dispatch_start(struct tenrec_call *c, const tenrec_error *why);

#endif
