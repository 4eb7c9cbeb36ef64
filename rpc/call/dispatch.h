/* SPDX-License-Identifier: Apache-2.0 */
/* dispatch.h - passes messages that arrive to their handlers. */
#ifndef TENREC_CALL_DISPATCH_H
#define TENREC_CALL_DISPATCH_H

#include <tenrec/agent.h>

struct tenrec_worker;

/* Serves a message of one type. Takes msg. */
typedef void dispatch_fn(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg);

enum { DISPATCH_HANDLERS_MAX = 8 };

/* Handlers of messages that are neither calls nor answers of calls, registered by other rooms
 * before the worker starts. */
struct dispatch {
    struct dispatch_handler {
        int32_t type;
        dispatch_fn *fn;
    } handler[DISPATCH_HANDLERS_MAX];
    unsigned n;
};

void dispatch_handle(struct dispatch *d, int32_t type, dispatch_fn *fn);

#endif
