/* SPDX-License-Identifier: Apache-2.0 */
#include "hub.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

pthread_mutex_t hub_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t hub_moved;

/* Deadlines are of the monotonic clock. */
__attribute__((constructor)) static void hub_prepare(void)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&hub_moved, &attr);
    pthread_condattr_destroy(&attr);
}

static struct inproc *agents;
static uint64_t generations;

tenrec_status hub_enter(struct inproc *a, tenrec_error *err)
{
    if (hub_find(a->group, a->me))
        return tenrec_fail(err, TENREC_EEXIST, "%s exists already", a->address);
    a->next = agents;
    agents = a;
    return TENREC_OK;
}

void hub_leave(struct inproc *a)
{
    struct inproc **at;

    for (at = &agents; *at && *at != a; at = &(*at)->next)
        ;
    if (*at)
        *at = a->next;
}

struct inproc *hub_find(const char *group, tenrec_peer id)
{
    for (struct inproc *a = agents; a; a = a->next)
        if (a->me == id && strcmp(a->group, group) == 0)
            return a;
    return NULL;
}

struct inproc *hub_agents(void)
{
    return agents;
}

struct peer *hub_peer(struct inproc *a, tenrec_peer id)
{
    for (uint32_t i = 0; i < a->n_peers; i++)
        if (a->peer[i].id == id)
            return &a->peer[i];
    return NULL;
}

tenrec_status hub_peer_add(struct inproc *a, tenrec_peer id)
{
    struct peer *grown;

    if (hub_peer(a, id))
        return TENREC_OK;
    grown = realloc(a->peer, (a->n_peers + 1) * sizeof *grown);
    if (!grown)
        return TENREC_ENOMEM;
    a->peer = grown;
    a->peer[a->n_peers++] = (struct peer){ .id = id };
    return TENREC_OK;
}

void hub_peer_remove(struct inproc *a, tenrec_peer id)
{
    struct peer *p = hub_peer(a, id);

    if (p)
        *p = a->peer[--a->n_peers];
}

uint64_t hub_connect(struct peer *p)
{
    if (p->state == LINK_NONE) {
        p->state = LINK_UP;
        p->generation = ++generations;
    }
    return p->generation;
}

void hub_break(struct inproc *a, tenrec_peer id, const char *why)
{
    struct peer *p = hub_peer(a, id), *caller;
    struct inproc *other = hub_find(a->group, id);

    if (!p || p->state != LINK_UP)
        return;
    p->state = LINK_BROKEN;
    p->why = why;
    caller = other ? hub_peer(other, a->me) : NULL;
    if (caller)
        caller->gone = why;
    pthread_cond_broadcast(&hub_moved);
}

void hub_push(struct inproc *to, struct envelope *e)
{
    e->next = NULL;
    *to->last = e;
    to->last = &e->next;
    to->queued++;
    pthread_cond_broadcast(&hub_moved);
}

static void take(struct inproc *a, struct envelope **at)
{
    struct envelope *e = *at;

    *at = e->next;
    if (!e->next)
        a->last = at;
    a->queued--;
    e->next = NULL;
}

static bool is_request(const struct envelope *e)
{
    return (e->msg->type & TENREC_MSG_REQUEST_BIT) && !(e->msg->flags & TENREC_MSG_CONTROL);
}

struct envelope *hub_pop(struct inproc *a, bool paused)
{
    for (struct envelope **at = &a->first; *at; at = &(*at)->next) {
        struct envelope *e = *at;
        if (paused && is_request(e))
            continue;
        take(a, at);
        pthread_cond_broadcast(&hub_moved); /* there is room now */
        return e;
    }
    return NULL;
}

struct envelope **hub_recall(struct inproc *to, const struct inproc *from, struct envelope **end)
{
    for (struct envelope **at = &to->first; *at;) {
        struct envelope *e = *at;
        if (from && e->sender != from) {
            at = &e->next;
            continue;
        }
        take(to, at);
        *end = e;
        end = &e->next;
    }
    pthread_cond_broadcast(&hub_moved);
    return end;
}

bool hub_wait(uint64_t deadline_ns)
{
    struct timespec until = { (time_t)(deadline_ns / 1000000000),
                              (long)(deadline_ns % 1000000000) };

    if (!deadline_ns) {
        pthread_cond_wait(&hub_moved, &hub_lock);
        return true;
    }
    return pthread_cond_timedwait(&hub_moved, &hub_lock, &until) != ETIMEDOUT;
}
