/* SPDX-License-Identifier: Apache-2.0 */
/* thread_state.h - what Tenrec remembers of the thread that runs. */
#ifndef TENREC_FUTURE_THREAD_STATE_H
#define TENREC_FUTURE_THREAD_STATE_H

#include "future/future_scope.h"

#include <stddef.h>

struct pool;
struct tenrec_worker;
struct waiter;

struct thread_state {
    unsigned no_block;          /* > 0: inside an inline function or a callback */
    struct pool *pool;          /* whose thread this is; NULL for others */
    struct future_scope *scope; /* innermost open scope */
    struct waiter *waiter;      /* that this thread polls for */
    /* For whom it delivers a message right now; NULL. The worker's agents wait for
     * the end of that before they go, and the worker for them. */
    const struct tenrec_worker *delivers;
};

/* Small, and read several times per call: worth the static TLS block. */
extern _Thread_local struct thread_state thread_state __attribute__((tls_model("initial-exec")));

/* Around code of the program that runs on whatever thread is there: it may not
 * block, and its calls do not belong to the scope that this thread has open. */
static inline struct future_scope *thread_lend(void)
{
    struct future_scope *scope = thread_state.scope;

    thread_state.scope = NULL;
    thread_state.no_block++;
    return scope;
}

static inline void thread_back(struct future_scope *scope)
{
    if (__builtin_expect(thread_state.scope != NULL, 0))
        future_scope_abandon("a callback");
    thread_state.no_block--;
    thread_state.scope = scope;
}

#endif
