/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - the states of calls, which a worker owns by value. */
#ifndef TENREC_WORKER_PARTS_H
#define TENREC_WORKER_PARTS_H

#include "rpc/call/active_calls.h"
#include "rpc/call/dispatch.h"
#include "rpc/call/function.h"
#include "rpc/call/pending.h"
#include "rpc/future/userloop.h"

struct service;
struct tenrec_config;
struct tenrec_worker;

struct worker_parts {
    struct pending pending;
    struct active_calls active_calls;
    struct functions functions;
    struct dispatch dispatch;
    struct userloop userloop;
};

/* Initialises `parts` (borrowed for the life of `w`), and connects `w` with them. */
void parts_connect(struct tenrec_worker *w, struct worker_parts *parts);

/* tenrec_worker_new with a table of services. */
tenrec_status worker_new(const struct tenrec_config *config, const struct service *const *services,
                         struct tenrec_worker **ret, tenrec_error *err);

/* Runs the callbacks that are queued for the program's loop, then frees the contents. */
void parts_finish(struct tenrec_worker *w);

#endif
