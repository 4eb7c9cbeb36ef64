/* SPDX-License-Identifier: Apache-2.0 */
#include "pipe/life/pipe_table.h"
#include "pipe/pipe.h"
#include "pipe/pipe_services.h"

#include <stdlib.h>

tenrec_status pipe_table_add(struct pipe_table *t, struct pipe *p)
{
    size_t slot = 0;

    pthread_mutex_lock(&t->lock);
    while (slot < t->n && t->pipe[slot])
        slot++;
    if (slot == t->n) {
        struct pipe **bigger = realloc(t->pipe, (t->n + 16) * sizeof(struct pipe *));

        if (!bigger) {
            pthread_mutex_unlock(&t->lock);
            return TENREC_ENOMEM;
        }
        memset(bigger + t->n, 0, 16 * sizeof(struct pipe *));
        t->pipe = bigger;
        t->n += 16;
    }
    pipe_ref(p);
    t->pipe[slot] = p;
    p->route = (struct tenrec_route){ slot, ++t->generations };
    pthread_mutex_unlock(&t->lock);
    return TENREC_OK;
}

static void add_counts(struct pipe *p, void *arg)
{
    uint64_t *sum = arg;

    sum[COUNT_MESSAGES_SENT] += atomic_load(&p->queue.n_queued) + atomic_load(&p->queue.n_written);
    sum[COUNT_MESSAGES_RECEIVED] += atomic_load(&p->read.n_messages);
    for (unsigned i = 0; i < p->conns.n; i++) {
        const struct conn *c = p->conns.of[i];

        if (!c)
            continue;
        sum[COUNT_SENDS] += atomic_load(&c->sends);
        sum[COUNT_RECEIVES] += atomic_load(&c->receives);
        sum[COUNT_BYTES_SENT] += atomic_load(&c->bytes_sent);
        sum[COUNT_BYTES_RECEIVED] += atomic_load(&c->bytes_received);
    }
}

void pipe_table_remove(struct pipe_table *t, struct pipe *p)
{
    size_t slot = (size_t)p->route.pipe;
    bool was_there;

    pthread_mutex_lock(&t->lock);
    was_there = slot < t->n && t->pipe[slot] == p;
    if (was_there) {
        t->pipe[slot] = NULL;
        add_counts(p, t->gone);
    }
    pthread_mutex_unlock(&t->lock);
    if (was_there)
        pipe_unref(p);
}

struct pipe *pipe_table_find(struct pipe_table *t, struct tenrec_route route)
{
    struct pipe *p = NULL;

    pthread_mutex_lock(&t->lock);
    if (route.pipe < t->n)
        p = t->pipe[route.pipe];
    if (p && p->route.generation == route.generation)
        pipe_ref(p);
    else
        p = NULL;
    pthread_mutex_unlock(&t->lock);
    return p;
}

void pipe_table_each(struct pipe_table *t, void (*fn)(struct pipe *p, void *arg), void *arg)
{
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->n; i++)
        if (t->pipe[i])
            fn(t->pipe[i], arg);
    pthread_mutex_unlock(&t->lock);
}

struct pipe **pipe_table_all(struct pipe_table *t)
{
    struct pipe **v;
    size_t n = 0;

    pthread_mutex_lock(&t->lock);
    v = calloc(t->n + 1, sizeof(struct pipe *));
    for (size_t i = 0; v && i < t->n; i++) {
        if (t->pipe[i]) {
            pipe_ref(t->pipe[i]);
            v[n++] = t->pipe[i];
        }
    }
    pthread_mutex_unlock(&t->lock);
    return v;
}

/* Before it is established the loop thread may be about to make a connection. */
static void add_live_counts(struct pipe *p, void *sum)
{
    if (pipe_state(p) == PIPE_ESTABLISHED)
        add_counts(p, sum);
}

void pipe_table_count(struct pipe_table *t, uint64_t sum[COUNTS])
{
    pipe_table_each(t, add_live_counts, sum);
    pthread_mutex_lock(&t->lock);
    for (int i = 0; i < COUNTS; i++)
        sum[i] += t->gone[i];
    pthread_mutex_unlock(&t->lock);
}

void pipe_table_enter(struct endpoint *ep)
{
    atomic_fetch_add(&ep->inside, 1);
}

void pipe_table_leave(struct endpoint *ep)
{
    if (atomic_fetch_sub(&ep->inside, 1) == 1 && atomic_load(&ep->state) == AGENT_STOPPING)
        ep->owner->told(ep);
}
