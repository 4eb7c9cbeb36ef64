/* SPDX-License-Identifier: Apache-2.0 */
/* agent_calls.c - calls of operations in progress, and functions that the loop thread runs
 * for them. */
#include "agent/agent.h"

void agent_told(struct endpoint *ep)
{
    struct agent *a = agent_of(ep);

    pthread_mutex_lock(&a->idle_lock);
    pthread_cond_broadcast(&a->idle);
    pthread_mutex_unlock(&a->idle_lock);
}

struct sync {
    struct reactor_task task;
    pthread_mutex_t lock;
    pthread_cond_t ran;
    bool done;
    void (*fn)(struct agent *a);
    struct agent *agent;
};

static void sync_run(struct reactor_task *t)
{
    struct sync *s = CONTAINER(t, struct sync, task);

    if (s->fn)
        s->fn(s->agent);
    pthread_mutex_lock(&s->lock);
    s->done = true;
    pthread_cond_signal(&s->ran);
    pthread_mutex_unlock(&s->lock);
}

void agent_call_loop(struct agent *a, void (*fn)(struct agent *a))
{
    struct sync s = { .task.run = sync_run, .fn = fn, .agent = a };

    pthread_mutex_init(&s.lock, NULL);
    pthread_cond_init(&s.ran, NULL);
    reactor_post(&a->ep.reactor, &s.task);
    pthread_mutex_lock(&s.lock);
    while (!s.done)
        pthread_cond_wait(&s.ran, &s.lock);
    pthread_mutex_unlock(&s.lock);
    pthread_cond_destroy(&s.ran);
    pthread_mutex_destroy(&s.lock);
}
