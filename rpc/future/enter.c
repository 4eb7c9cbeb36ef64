/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/future/worker.h"

#include "rpc/future/thread_state.h"

#define ENTER_STOP_WAITS (UINT32_C(1) << 31) /* in inside: the last thread wakes shutdown */

tenrec_status worker_refuse_child(tenrec_error *err)
{
    return tenrec_fail(err, TENREC_ESHUTDOWN,
                       "this process was forked from the worker, which belongs to its parent");
}

/* A thread that delivers for `w` is not counted: shutdown waits for the agents first. */
tenrec_status worker_enter(struct tenrec_worker *w, tenrec_error *err)
{
    if (!worker_is_own(w))
        return worker_refuse_child(err);
    if (thread_state.delivers != w)
        atomic_fetch_add(&w->inside, 1);
    if (atomic_load(&w->state) == WORKER_RUNNING)
        return TENREC_OK;
    worker_leave(w);
    return tenrec_fail(err, TENREC_ESHUTDOWN, "the worker is not running: %s",
                       atomic_load(&w->state) <= WORKER_STARTING ? "call tenrec_init_rpc first"
                                                                 : "it has been shut down");
}

/* Only the last thread to leave a stopping worker may touch `w` after the decrement; for any
 * other, `w` may already be freed. */
void worker_leave(struct tenrec_worker *w)
{
    if (thread_state.delivers == w || atomic_fetch_sub(&w->inside, 1) != (ENTER_STOP_WAITS | 1))
        return;
    pthread_mutex_lock(&w->lock);
    w->all_left = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

void worker_wait_until_left(struct tenrec_worker *w)
{
    pthread_mutex_lock(&w->lock);
    w->all_left = false;
    if (atomic_fetch_or(&w->inside, ENTER_STOP_WAITS) > 0)
        while (!w->all_left)
            pthread_cond_wait(&w->changed, &w->lock);
    atomic_fetch_and(&w->inside, ~ENTER_STOP_WAITS);
    pthread_mutex_unlock(&w->lock);
}

bool tenrec_worker_running(const struct tenrec_worker *w)
{
    return atomic_load(&w->state) == WORKER_RUNNING;
}
