/* SPDX-License-Identifier: Apache-2.0 */
/* thread_state.h - the state of the running thread, and its scopes, which collect the futures made
 * on it. Per thread, no locks. */
#ifndef TENREC_FUTURE_THREAD_STATE_H
#define TENREC_FUTURE_THREAD_STATE_H

#include "core/base/fail.h"

#include <stddef.h>
#include <tenrec/future.h>

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
                                       made ready; NULL: none runs (future_callbacks.c) */
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

/* ---- future_scope.c -------------------------------------------------------------------------- */

/* The futures of one scope, each shared. */
struct future_scope {
    struct future_scope *outer;
    struct tenrec_future **future;
    size_t n, room;
};

/* Adds `f` (shared) to the innermost scope of this thread, if there is one. errors: ENOMEM */
tenrec_status future_scope_add(struct tenrec_future *f, tenrec_error *err);

/* Closes the innermost scope of this thread; the caller owns it. Returns NULL if no scope is open.
 */
struct future_scope *future_scope_close(void);

/* Drops the futures of a closed scope, and the scope. */
void future_scope_drop(struct future_scope *s);

/* Drops and logs the scopes that `name`, a function or callback on this thread, left open. */
void future_scope_abandon(const char *name);

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
    if (unlikely(thread_state.scope != NULL))
        future_scope_abandon("a callback");
    thread_state.no_block--;
    thread_state.scope = scope;
}

#endif
