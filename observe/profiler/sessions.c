/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/profiler/sessions.h"

#include "core/base/forks.h"
#include "observe/profiler/profiler.h"
#include "rpc/call/observe.h"
#include "rpc/future/thread_state.h"

/* Guards `list`; held while events are added to lists. Acquired before events.lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tenrec_profiler *list;
static struct profiler_service *workers; /* guarded by it, too */
static unsigned recorders;               /* likewise: sessions, and served calls that record */

static _Thread_local struct thread_events current;

/* In the child of a fork: the sessions belong to the parent. */
static void sessions_forget(void)
{
    pthread_mutex_init(&lock, NULL);
    list = NULL;
    workers = NULL;
    recorders = 0;
    event_forget_thread();
}

static struct fork_hook fork_hook = { .child = sessions_forget };

/* Lock held. */
static void recorders_turn(bool on)
{
    for (struct profiler_service *p = workers; p; p = p->next)
        observe_turn(p->w, OBSERVER_PROFILER, on);
}

void recorders_add(void)
{
    forks_follow(&fork_hook);
    pthread_mutex_lock(&lock);
    if (recorders++ == 0)
        recorders_turn(true);
    pthread_mutex_unlock(&lock);
}

void recorders_remove(void)
{
    pthread_mutex_lock(&lock);
    /* Never below 0: a fork's child has reset the count. */
    if (recorders > 0 && --recorders == 0)
        recorders_turn(false);
    pthread_mutex_unlock(&lock);
}

void recorders_follow(struct profiler_service *p)
{
    forks_follow(&fork_hook);
    pthread_mutex_lock(&lock);
    p->next = workers;
    workers = p;
    observe_turn(p->w, OBSERVER_PROFILER, recorders > 0);
    pthread_mutex_unlock(&lock);
}

void recorders_forget(const struct profiler_service *p)
{
    struct profiler_service **at;

    pthread_mutex_lock(&lock);
    for (at = &workers; *at && *at != p; at = &(*at)->next)
        ;
    if (*at)
        *at = p->next;
    pthread_mutex_unlock(&lock);
}

void sessions_enter(struct tenrec_profiler *p)
{
    recorders_add();
    pthread_mutex_lock(&lock);
    p->next = list;
    list = p;
    pthread_mutex_unlock(&lock);
}

void sessions_leave(struct tenrec_profiler *p)
{
    struct tenrec_profiler **at;

    pthread_mutex_lock(&lock);
    for (at = &list; *at && *at != p; at = &(*at)->next)
        ;
    if (*at)
        *at = p->next;
    pthread_mutex_unlock(&lock);
    recorders_remove();
}

static bool sessions_concerns(const struct tenrec_profiler *p, const struct tenrec_worker *w,
                              bool served)
{
    return p->scope == TENREC_PROFILE_WORKER ? p->w == w : served;
}

bool sessions_want(const struct tenrec_worker *w, bool served, bool *ret_remote)
{
    bool found = false;

    *ret_remote = false;
    pthread_mutex_lock(&lock);
    for (const struct tenrec_profiler *p = list; p; p = p->next) {
        if (sessions_concerns(p, w, served)) {
            found = true;
            *ret_remote = *ret_remote || p->events->remote;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void sessions_add(const struct tenrec_worker *w, bool served, uint64_t began_ns,
                  const struct tenrec_event *e, const char *prefix)
{
    pthread_mutex_lock(&lock);
    for (const struct tenrec_profiler *p = list; p; p = p->next)
        if (sessions_concerns(p, w, served) && began_ns >= p->start_ns)
            events_add(p->events, e, prefix);
    pthread_mutex_unlock(&lock);
}

void sessions_miss(const struct tenrec_worker *w, bool served, uint64_t n)
{
    pthread_mutex_lock(&lock);
    for (const struct tenrec_profiler *p = list; p; p = p->next)
        if (sessions_concerns(p, w, served))
            events_miss(p->events, n);
    pthread_mutex_unlock(&lock);
}

struct events *thread_events(void)
{
    if (!current.events || current.depth != thread_state.no_block ||
        !events_are_open(current.events))
        return NULL;
    return current.events;
}

bool thread_events_is(const struct events *all)
{
    return current.events == all && current.depth == thread_state.no_block;
}

struct thread_events thread_events_enter(struct events *all)
{
    struct thread_events before = current;

    current = (struct thread_events){ events_share(all), thread_state.no_block };
    return before;
}

void thread_events_leave(struct thread_events before)
{
    events_drop(current.events);
    current = before;
}
