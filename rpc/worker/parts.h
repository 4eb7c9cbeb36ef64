/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - the states of the rooms that a worker owns by value, and the tables through which calls
 * reach the rooms above them. */
#ifndef TENREC_WORKER_PARTS_H
#define TENREC_WORKER_PARTS_H

#include "observe/recorder/recorder.h"
#include "rpc/call/active_calls.h"
#include "rpc/call/dispatch.h"
#include "rpc/call/function.h"
#include "rpc/call/pending.h"
#include "rpc/future/userloop.h"

struct tenrec_worker;

struct worker_parts {
    struct pending pending;
    struct active_calls active_calls;
    struct functions functions;
    struct dispatch dispatch;
    struct userloop userloop;
    struct recorder recorder;
};

/* Initialises `parts` (borrowed for the life of `w`), connects `w` with them, and registers the
 * handlers of the rooms. */
void parts_connect(struct tenrec_worker *w, struct worker_parts *parts);

/* Runs the callbacks that are queued for the program's loop, then frees the contents. */
void parts_finish(struct tenrec_worker *w);

#endif
