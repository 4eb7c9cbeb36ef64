/* SPDX-License-Identifier: Apache-2.0 */
/* thread_state.h - the state of the running thread. */
#ifndef TENREC_FUTURE_THREAD_STATE_H
#define TENREC_FUTURE_THREAD_STATE_H

#include "rpc/future/future_scope.h"

#include <stddef.h>

struct future_callback;
struct pool;
struct tenrec_worker;
struct waiter;

struct thread_state {
    unsigned no_block;              /* > 0: inside an inline function or a callback */
    struct pool *pool;              /* of a pool's thread, or NULL */
    struct future_scope *scope;     /* innermost open scope */
    struct waiter *waiter;          /* that this thread polls for */
    struct future_callback **added; /* end of the list of callbacks that the running callback has
                                       made ready; NULL: none runs (future_callbacks.h) */
    /* The worker for which this thread delivers a message, or NULL. Agents wait for the end of the
     * delivery before they stop, and the worker waits for its agents. */
    const struct tenrec_worker *delivers;
};

/* Small, and read several times per call: worth a place in the static TLS block. */
extern _Thread_local struct thread_state thread_state STATIC_TLS;

/* From now on a forked child forgets what its thread did for the parent. */
void thread_state_watch_forks(void);

/* Around a wait of a pool's thread. */
void pool_block_begin(struct pool *p);
void pool_block_end(struct pool *p);

/* Around code of the program on a thread of another owner: the code may not block, and its calls do
 * not belong to the thread's open scope. */
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
