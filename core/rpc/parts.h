/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - the states of the rooms that a worker owns by value, and the tables through which calls
 * reach the rooms above them. */
#ifndef TENREC_RPC_PARTS_H
#define TENREC_RPC_PARTS_H

#include "rpc/dispatch.h"
#include "rpc/function.h"
#include "rpc/pending.h"
#include "rpc/served.h"
#include "rpc/userloop.h"

struct tenrec_worker;

struct worker_parts {
    struct pending pending;
    struct served served;
    struct functions functions;
    struct dispatch dispatch;
    struct userloop userloop;
};

/* Lets `w` borrow `parts`, which live as long as `w`, and registers what each room serves. To be
 * called before anything else of `w` is used. */
void parts_connect(struct tenrec_worker *w, struct worker_parts *parts);

#endif
