/* SPDX-License-Identifier: Apache-2.0 */
/* reactor.h - the loop of an agent: readiness of sockets, tasks, timers.
 *
 * Everything it watches is in one epoll set. Sources, timers and their
 * functions belong to the loop thread: the reactor's own, or a guest that leads
 * in its place. Only post, wake, lead and the reactor_watch family may be called
 * from elsewhere. */
#ifndef TENSORPIPE_REACTOR_H
#define TENSORPIPE_REACTOR_H

#include "core/base/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenrec/agent.h>
#include <tenrec/error.h>

#define unlikely(condition) __builtin_expect(!!(condition), 0)
/* The struct of `type` whose `member` is at `ptr`: the owner of a source, task or timer. */
#define CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* A file descriptor in the set. `ready` gets epoll's events. The memory must
 * live until the reactor says so (reactor_defer), because an event for it may
 * have been fetched already when it is unwatched. */
struct reactor_source {
    int fd;
    void (*ready)(struct reactor_source *s, uint32_t events);
};

/* Runs once on the loop thread after each post; posts before it ran coalesce. */
struct reactor_task {
    struct reactor_task *next;
    void (*run)(struct reactor_task *t);
    bool queued; /* under the reactor's lock */
};

struct reactor_timer {
    struct reactor_timer *next, **prev; /* prev NULL: not armed */
    uint64_t due_ns;
    void (*fire)(struct reactor_timer *t);
};

enum reactor_looked {
    LOOK_NOTHING, /* nothing; poll again */
    LOOK_NO_MORE, /* nothing, and the next event will wake the loop */
    LOOK_FOUND,
};

/* A source that the epoll set cannot watch: the loop polls it with `look` in every round,
 * and before it `sleeps`, while it is in the list. `found` runs where events do. */
struct reactor_look {
    struct reactor_look *next, **prev; /* prev NULL: not in the list */
    enum reactor_looked (*look)(struct reactor_look *l, bool sleeps);
    void (*found)(struct reactor_look *l);
};

#define REACTOR_FOREVER UINT64_MAX

/* The leader of the loop; see leader_follower.c. */
enum reactor_led { LED_BY_LOOP, LED_BY_GUEST, LED_BY_NOBODY };
struct reactor_guests {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t given; /* led is LED_BY_GUEST */
    enum reactor_led led;
    bool here;          /* a guest, whether it leads or not yet */
    atomic_bool wanted; /* the lead, by a guest; changes under lock */
    int stand_by_fd;    /* where the own thread sleeps while a guest leads; -1: no guest yet */
    int timer_fd;       /* in that set */
    uint64_t timer_ns;  /* when it fires */
    uint64_t left_ns;   /* when a guest last left */
    struct reactor_source wake;     /* the guest's wake_fd */
    const struct tenrec_wait *wait; /* the leading guest's; NULL: no guest leads. Loop thread */
    bool dismissed;                 /* loop thread */
};

struct reactor {
    int epoll_fd, wake_fd;
    struct reactor_source wake;
    struct reactor_guests guests;
    pthread_t thread;
    bool running;
    atomic_bool stop;
    atomic_bool asleep;  /* in epoll_wait, or about to: a post must wake it */
    atomic_uint waiting; /* tasks that were posted and not run */
    pthread_mutex_t lock;
    struct reactor_task *head, **tail; /* under lock */
    struct reactor_task *dead;         /* under lock: run after the tasks of the next round */
    struct reactor_timer *timers;      /* by due_ns */
    unsigned full_rounds;              /* in which timers were due, and more events waited */
    struct reactor_look *looks, *found;
    /* Reads whatever is worth spinning for. How many nanoseconds the loop may
     * sleep now: 0 not at all, REACTOR_FOREVER until something happens. Runs on
     * the loop thread. */
    uint64_t (*spin)(void *arg);
    void *arg;
};

tenrec_status reactor_init(struct reactor *r, tenrec_error *err);
tenrec_status reactor_start(struct reactor *r, tenrec_error *err);
/* Joins the thread. What is posted until then has run. */
void reactor_stop(struct reactor *r);
void reactor_finish(struct reactor *r);

/* The reactor whose loop this thread runs; NULL: none. Only reactor/ changes it. */
extern _Thread_local const struct reactor *reactor_mine STATIC_TLS;

/* Returns false if `t` was posted already and has not run yet. */
bool reactor_post(struct reactor *r, struct reactor_task *t);
/* Runs `t` when no fetched event can refer to the caller's sources any more and all tasks that
 * were posted before have run: the place to free them. */
void reactor_defer(struct reactor *r, struct reactor_task *t);

/* events: EPOLL* with or without EPOLLET. 0 or an errno. rewatch also adds a removed source, and
 * reports pending events. */
int reactor_watch(struct reactor *r, struct reactor_source *s, uint32_t events);
int reactor_rewatch(struct reactor *r, struct reactor_source *s, uint32_t events);
void reactor_unwatch(struct reactor *r, struct reactor_source *s);

/* The calling thread leads the loop until *wait->done is set or the deadline, if no
 * other guest does (then, and on the loop thread: EUNSUPPORTED, at once). */
tenrec_status reactor_lead(struct reactor *r, const struct tenrec_wait *wait);

/* On the loop thread: the wait of a guest that leads is over, and of a later one at once. */
static inline void reactor_dismiss_guests(struct reactor *r)
{
    r->guests.dismissed = true;
}

/* On the loop thread: it is a guest's. */
static inline bool reactor_has_guest(const struct reactor *r)
{
    return unlikely(r->guests.wait != NULL);
}

/* On the loop thread: a guest leads, and has what it waits for. */
static inline bool reactor_is_over(const struct reactor *r)
{
    return reactor_has_guest(r) &&
           (r->guests.dismissed || __atomic_load_n(r->guests.wait->done, __ATOMIC_ACQUIRE));
}

/* On the loop thread only. */
void reactor_arm(struct reactor *r, struct reactor_timer *t, uint64_t due_ns);
void reactor_disarm(struct reactor_timer *t);
/* `l` may be in the list already. */
void reactor_look_add(struct reactor *r, struct reactor_look *l);
void reactor_look_remove(struct reactor_look *l);

/* spin.c: whether spinning pays off, learned from whether it did. */

#define SPIN_NS 50000u /* longest spin of progress: adaptive, but for a guest */

struct spin {
    uint32_t misses;  /* in a row */
    uint32_t skip;    /* waits that do not try at all: each waiter counts down */
    uint32_t backoff; /* the next value of skip */
};

/* Notes whether a spin has paid off. */
void spin_ended(struct spin *s, bool paid_off);

#endif
