/* SPDX-License-Identifier: Apache-2.0 */
/* reactor.c - an epoll loop that a data path can spin in.
 *
 * libuv's loop would do for the control plane, but the data path must decide
 * by itself when to spin on a socket and when to sleep, and may not pay a
 * second epoll set for it. Watching, tasks and timers are so few lines that
 * the plugin needs no foreign loop inside its own. */
#include "reactor/reactor_inside.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EVENTS_MAX 64
#define FINE_NS 2000000u  /* shorter sleeps are exact */
#define FULL_ROUNDS 64    /* that timers which are due wait for; more than 4096 sockets take */
#define SOON_NS 50000000u /* timers that are due later may be late by a tick */

/* As gcc says it. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif

_Thread_local const struct reactor *reactor_mine;

void reactor_read_away(struct reactor_source *s, uint32_t events)
{
    uint64_t n;

    (void)events;
    while (read(s->fd, &n, sizeof n) < 0 && errno == EINTR)
        continue;
}

tenrec_status reactor_init(struct reactor *r, tenrec_error *err)
{
    int e;

    *r = (struct reactor){ .epoll_fd = -1, .wake_fd = -1 };
    r->tail = &r->head;
    r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (r->epoll_fd < 0 || r->wake_fd < 0) {
        e = errno;
        goto err_fds;
    }
    r->wake = (struct reactor_source){ .fd = r->wake_fd, .ready = reactor_read_away };
    e = reactor_watch(r, &r->wake, EPOLLIN);
    if (e)
        goto err_fds;
    pthread_mutex_init(&r->lock, NULL);
    reactor_guests_init(&r->guests);
    return TENREC_OK;

err_fds:
    if (r->epoll_fd >= 0)
        close(r->epoll_fd);
    if (r->wake_fd >= 0)
        close(r->wake_fd);
    return tenrec_fail_errno(err, TENREC_EOS, e, "cannot make the event loop");
}

/* A loop that is about to sleep sets `asleep` before it checks `waiting` once more; a
 * poster increments `waiting` before it checks `asleep`. One of the two sees the
 * other, so that a busy loop costs its posters no system call. */
void reactor_wake(struct reactor *r)
{
    uint64_t one = 1;

    if (atomic_load(&r->asleep))
        while (write(r->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
            continue;
}

bool reactor_post(struct reactor *r, struct reactor_task *t)
{
    pthread_mutex_lock(&r->lock);
    if (t->queued) {
        pthread_mutex_unlock(&r->lock);
        return false;
    }
    t->queued = true;
    t->next = NULL;
    *r->tail = t;
    r->tail = &t->next;
    atomic_fetch_add(&r->waiting, 1);
    pthread_mutex_unlock(&r->lock);
    reactor_wake(r);
    return true;
}

void reactor_defer(struct reactor *r, struct reactor_task *t)
{
    pthread_mutex_lock(&r->lock);
    t->next = r->dead;
    r->dead = t;
    atomic_fetch_add(&r->waiting, 1);
    pthread_mutex_unlock(&r->lock);
    reactor_wake(r);
}

static void reactor_run_dead(struct reactor *r, struct reactor_task *t)
{
    struct reactor_task *next;

    for (; t; t = next) {
        next = t->next;
        atomic_fetch_sub(&r->waiting, 1);
        t->run(t);
    }
}

/* Only what was posted before it began: a task that posts itself must not keep the sockets
 * waiting. Then frees objects that had died when it began: no fetched event names them, and the
 * tasks that they had posted have run. */
static void reactor_run_tasks(struct reactor *r)
{
    struct reactor_task *last, *dead, *t = NULL;

    if (!atomic_load_explicit(&r->waiting, memory_order_acquire))
        return;
    pthread_mutex_lock(&r->lock);
    dead = r->dead;
    r->dead = NULL;
    last = r->head ? CONTAINER(r->tail, struct reactor_task, next) : NULL;
    while (r->head && t != last) {
        t = r->head;
        r->head = t->next;
        if (!r->head)
            r->tail = &r->head;
        t->queued = false;
        atomic_fetch_sub(&r->waiting, 1);
        pthread_mutex_unlock(&r->lock);
        t->run(t); /* may free t: it is only compared from here on */
        pthread_mutex_lock(&r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    reactor_run_dead(r, dead);
}

/* In how many nanoseconds the next timer is due; 0: now. The exact clock costs as much as reading a
 * message does, so it is read only if the timer is near: the coarse one is up to a tick of the
 * kernel behind. */
static uint64_t until_timer(const struct reactor *r)
{
    uint64_t due, now;

    if (!r->timers)
        return REACTOR_FOREVER;
    due = r->timers->due_ns;
    now = clock_about_ns();
    if (due < now + SOON_NS)
        now = clock_now_ns();
    return due > now ? due - now : 0;
}

/* Fires what was due at `due_ns`, before the sockets were last read. A process that was not run for
 * a while finds its timers due and its sockets full: bytes that arrived in time are read first.
 * While more events wait than one fetch takes, timers wait, too, but not for ever. */
static void run_timers(struct reactor *r, uint64_t due_ns, bool more)
{
    if (more && ++r->full_rounds < FULL_ROUNDS)
        return;
    r->full_rounds = 0;
    while (r->timers && r->timers->due_ns <= due_ns) {
        struct reactor_timer *t = r->timers;

        reactor_disarm(t);
        t->fire(t);
    }
}

/* The bare system call, as for reading: the C library's is a cancellation point. But
 * ThreadSanitizer must see that calls of epoll_ctl happened before. */
static int epoll_fetch(const struct reactor *r, struct epoll_event *events, int ms)
{
#ifdef __SANITIZE_THREAD__
    return epoll_wait(r->epoll_fd, events, EVENTS_MAX, ms);
#else
    return (int)syscall(SYS_epoll_pwait, r->epoll_fd, events, EVENTS_MAX, ms, NULL, 0);
#endif
}

/* Sleeps for whole milliseconds, rounded up, as is good enough for timers; one
 * that is shorter is exact, by a second system call. */
static int reactor_fetch(struct reactor *r, struct epoll_event *events, uint64_t ns)
{
    uint64_t ms = ns / 1000000u + (ns % 1000000u != 0);

    if (ns && ns < FINE_NS) {
        const struct timespec limit = { 0, (long)ns };
        struct pollfd set = { .fd = r->epoll_fd, .events = POLLIN };

        ppoll(&set, 1, &limit, NULL);
        ms = 0;
    }
    if (ns == REACTOR_FOREVER)
        return epoll_fetch(r, events, -1);
    return epoll_fetch(r, events, ms < INT_MAX ? (int)ms : INT_MAX);
}

static void link_look(struct reactor_look **list, struct reactor_look *l)
{
    l->next = *list;
    l->prev = list;
    if (l->next)
        l->next->prev = &l->next;
    *list = l;
}

void reactor_look_remove(struct reactor_look *l)
{
    if (!l->prev)
        return;
    *l->prev = l->next;
    if (l->next)
        l->next->prev = l->prev;
    l->prev = NULL;
}

void reactor_look_add(struct reactor *r, struct reactor_look *l)
{
    if (!l->prev)
        link_look(&r->looks, l);
}

/* Returns true if the loop must not sleep. Only checks: callbacks run later, so that the list does
 * not change during the walk. */
static bool reactor_look_around(struct reactor *r, bool sleeps)
{
    struct reactor_look *next;

    for (struct reactor_look *l = r->looks; l; l = next) {
        enum reactor_looked looked = l->look(l, sleeps);

        next = l->next;
        if (looked == LOOK_NOTHING)
            continue;
        reactor_look_remove(l);
        if (looked == LOOK_FOUND)
            link_look(&r->found, l);
    }
    return r->found != NULL;
}

bool reactor_rest(struct reactor *r)
{
    atomic_store(&r->asleep, true);
    if (atomic_load(&r->waiting) || atomic_load(&r->stop))
        return false;
    return !((r->looks && reactor_look_around(r, true)) || r->found);
}

static void tell_found(struct reactor *r)
{
    while (r->found) {
        struct reactor_look *l = r->found;

        reactor_look_remove(l);
        l->found(l);
    }
}

void reactor_round(struct reactor *r, uint64_t ns)
{
    struct epoll_event events[EVENTS_MAX];
    bool sleepy = false;
    uint64_t due_ns;
    int n;

    reactor_run_tasks(r);
    due_ns = until_timer(r) == 0 ? clock_now_ns() : 0;
    if (due_ns)
        ns = 0;
    if (r->spin) {
        uint64_t spin_ns = r->spin(r->arg);

        if (spin_ns < ns)
            ns = spin_ns;
    }
    if (reactor_is_over(r))
        ns = 0;
    if (ns != 0) {
        uint64_t timer_ns = until_timer(r);

        sleepy = true;
        if (timer_ns < ns)
            ns = timer_ns;
        atomic_store(&r->asleep, true);
        if (atomic_load(&r->waiting) || atomic_load(&r->stop) || atomic_load(&r->guests.wanted))
            ns = 0;
    }
    if ((r->looks && reactor_look_around(r, ns != 0)) || r->found)
        ns = 0;
    n = reactor_fetch(r, events, ns);
    if (sleepy)
        atomic_store_explicit(&r->asleep, false, memory_order_relaxed);
    for (int i = 0; i < n; i++) {
        struct reactor_source *s = events[i].data.ptr;

        s->ready(s, events[i].events);
    }
    tell_found(r);
    if (due_ns)
        run_timers(r, due_ns, n == EVENTS_MAX);
}

/* What was posted until now, and what that posts. */
static void reactor_run_all(struct reactor *r)
{
    while (atomic_load(&r->waiting))
        reactor_run_tasks(r);
}

static void *loop_main(void *arg)
{
    struct reactor *r = arg;

    reactor_mine = r;
    pthread_setname_np(pthread_self(), "tensorpipe");
    while (!atomic_load(&r->stop)) {
        reactor_round(r, REACTOR_FOREVER);
        if (unlikely(atomic_load_explicit(&r->guests.wanted, memory_order_relaxed)))
            reactor_let_guest(r);
    }
    reactor_run_all(r);
    return NULL;
}

tenrec_status reactor_start(struct reactor *r, tenrec_error *err)
{
    pthread_attr_t attr;
    sigset_t all, old;
    int e;

    /* The program's signals are handled on the program's threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, TENREC_THREAD_STACK);
    e = pthread_create(&r->thread, &attr, loop_main, r);
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (e)
        return tenrec_fail_errno(err, TENREC_EOS, e, "cannot start the loop thread");
    r->running = true;
    return TENREC_OK;
}

void reactor_stop(struct reactor *r)
{
    if (!r->running)
        return;
    atomic_store(&r->stop, true);
    reactor_wake(r);
    pthread_join(r->thread, NULL);
    r->running = false;
    /* Last references may have been dropped by other threads in between. */
    reactor_run_all(r);
}

void reactor_finish(struct reactor *r)
{
    struct reactor_task *dead;

    while ((dead = r->dead) != NULL) { /* their end may leave others */
        r->dead = NULL;
        reactor_run_dead(r, dead);
    }
    reactor_guests_finish(&r->guests);
    pthread_mutex_destroy(&r->lock);
    close(r->epoll_fd);
    close(r->wake_fd);
}

static int reactor_control(struct reactor *r, int op, struct reactor_source *s, uint32_t events)
{
    struct epoll_event e = { .events = events, .data.ptr = s };

    return epoll_ctl(r->epoll_fd, op, s->fd, &e) < 0 ? errno : 0;
}

int reactor_watch(struct reactor *r, struct reactor_source *s, uint32_t events)
{
    return reactor_control(r, EPOLL_CTL_ADD, s, events);
}

int reactor_rewatch(struct reactor *r, struct reactor_source *s, uint32_t events)
{
    int e = reactor_control(r, EPOLL_CTL_MOD, s, events);

    return e == ENOENT ? reactor_control(r, EPOLL_CTL_ADD, s, events) : e;
}

void reactor_unwatch(struct reactor *r, struct reactor_source *s)
{
    reactor_control(r, EPOLL_CTL_DEL, s, 0);
}

void reactor_arm(struct reactor *r, struct reactor_timer *t, uint64_t due_ns)
{
    struct reactor_timer **at = &r->timers;

    reactor_disarm(t);
    while (*at && (*at)->due_ns <= due_ns)
        at = &(*at)->next;
    t->due_ns = due_ns;
    t->next = *at;
    t->prev = at;
    if (t->next)
        t->next->prev = &t->next;
    *at = t;
}

void reactor_disarm(struct reactor_timer *t)
{
    if (!t->prev)
        return;
    *t->prev = t->next;
    if (t->next)
        t->next->prev = t->prev;
    t->prev = NULL;
}
