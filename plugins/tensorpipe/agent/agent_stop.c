/* SPDX-License-Identifier: Apache-2.0 */
/* agent_stop.c - the end of an agent: it waits until all is written, stops, and frees itself. */
#include "agent/agent.h"
#include "pipe/life/pipe_life.h"

#include <inttypes.h>
#include <stdlib.h>

#define DRAIN_LOOK_NS 10000000u

static void add_unsent(struct pipe *p, void *arg)
{
    uint64_t *bytes = arg;

    /* A batch puts its messages into the queue before it releases them. */
    *bytes += atomic_load(&p->queue.gathers);
    *bytes += atomic_load(&p->queue.bytes) + atomic_load(&p->queue.untold);
    if (pipe_state(p) == PIPE_ESTABLISHED)
        *bytes += atomic_load(&p->conns.of[CONN_DESCRIPTOR]->writing);
}

tenrec_status agent_drain(struct tenrec_agent *self, uint32_t ms, tenrec_error *err)
{
    struct agent *a = self->impl;
    uint64_t until = clock_now_ns() + (uint64_t)ms * 1000000u, left;

    atomic_fetch_add(&a->ep.drainers, 1);
    for (;;) {
        uint64_t now = clock_now_ns(), next = now + DRAIN_LOOK_NS;

        left = 0;
        pipe_table_each(&a->pipes, add_unsent, &left);
        if (!left || now >= until)
            break;
        /* Counters change without this lock: do not rely on a wake-up. */
        if (next > until)
            next = until;
        pthread_mutex_lock(&a->idle_lock);
        clock_cond_wait(&a->idle, &a->idle_lock, next);
        pthread_mutex_unlock(&a->idle_lock);
    }
    atomic_fetch_sub(&a->ep.drainers, 1);
    if (!left)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_ETIMEDOUT, "%" PRIu64 " bytes not written after %u ms", left,
                       ms);
}

/* ---- stopping ---- */

static void cancel_pipes(struct agent *a)
{
    struct pipe **v = pipe_table_all(&a->pipes);
    tenrec_error why;

    tenrec_fail(&why, TENREC_ECANCELED, "this worker is shutting down");
    for (size_t i = 0; v && v[i]; i++) {
        pipe_fail(v[i], &why);
        pipe_teardown(v[i]);
        pipe_unref(v[i]);
    }
    free(v);
}

/* On the loop thread: no connection is accepted or made from here on. */
static void stop_on_loop(struct agent *a)
{
    reactor_dismiss_guests(&a->ep.reactor);
    listener_stop(&a->listener);
    reactor_disarm(&a->poll_reclaim_timer);
    reactor_disarm(&a->keepalive_timer);
    reactor_disarm(&a->idle_timer);
    cancel_pipes(a);
}

static void stop_devices(struct agent *a)
{
    cuda_stop(&a->cuda);
}

static void drop_old_pipes(struct agent *a)
{
    for (int i = 0; i < atomic_load(&a->ep.peers_end); i++)
        for (struct peer *peer = atomic_load(&a->ep.peers[i]); peer; peer = peer->before)
            peer_drop_old(peer);
}

static bool in_use(struct agent *a)
{
    if (atomic_load(&a->ep.inside))
        return true;
    for (int i = 0; i < atomic_load(&a->ep.peers_end); i++)
        for (struct peer *peer = atomic_load(&a->ep.peers[i]); peer; peer = peer->before)
            if (peer_in_use(peer))
                return true;
    return false;
}

void agent_shutdown(struct tenrec_agent *self)
{
    struct agent *a = self->impl;
    int started = AGENT_STARTED;

    if (!atomic_compare_exchange_strong(&a->ep.state, &started, AGENT_STOPPING))
        return;
    agent_call_loop(a, stop_on_loop);
    pthread_mutex_lock(&a->idle_lock);
    while (in_use(a))
        pthread_cond_wait(&a->idle, &a->idle_lock);
    pthread_mutex_unlock(&a->idle_lock);
    /* The last thread to leave may not have done this yet. */
    drop_old_pipes(a);
    /* Once more, for pipes that a send made which was inside before. */
    agent_call_loop(a, stop_on_loop);
    agent_call_loop(a, stop_devices);
    reactor_stop(&a->ep.reactor);
    atomic_store(&a->ep.state, AGENT_STOPPED);
}

void agent_destroy(struct tenrec_agent *self)
{
    struct agent *a = self->impl;

    agent_shutdown(self);
    listener_close(&a->listener);
    drop_old_pipes(a);
    reactor_finish(&a->ep.reactor);
    cuda_finish(&a->cuda);
    peer_table_finish(&a->ep);
    descriptors_release(a);
    free(a->pipes.pipe);
    pthread_mutex_destroy(&a->pipes.lock);
    pthread_mutex_destroy(&a->idle_lock);
    for (int i = 0; i < ENDPOINT_LOCKS; i++)
        pthread_mutex_destroy(&a->ep.peer_locks[i]);
    pthread_cond_destroy(&a->idle);
    free(a);
}
