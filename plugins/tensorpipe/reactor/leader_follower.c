/* SPDX-License-Identifier: Apache-2.0 */
/* leader_follower.c - a thread of the user that leads the loop.
 *
 * Where a message is run by another thread than its reader, waking that thread takes
 * longer than the rest of the way. So a thread that runs messages may lead the loop itself, and the
 * loop's own thread is a follower.
 *
 * The guest leaves with each message, and returns soon. No thread is woken for that: the loop's
 * thread sleeps in an epoll set of which the loop's set is a member, armed only while no thread
 * leads. On an event it wakes and leads, until the guest wants to again. Timers are in that set as
 * a descriptor.
 *
 * The next request may arrive just before the guest returns: of the same caller, which has its
 * answer, or of another. The loop's thread leaves that to the guest: two threads that take turns
 * with each message cost more than a short message does. */
#include "reactor/reactor_inside.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define GUEST_AWAY_NS 100000u /* a guest that has been away for so long does not return soon */

void reactor_guests_init(struct reactor_guests *g)
{
    g->stand_by_fd = g->timer_fd = -1;
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->given, NULL);
}

void reactor_guests_finish(struct reactor_guests *g)
{
    if (g->stand_by_fd >= 0)
        close(g->stand_by_fd);
    if (g->timer_fd >= 0)
        close(g->timer_fd);
    pthread_cond_destroy(&g->given);
    pthread_mutex_destroy(&g->lock);
}

/* Sets whether events of the loop's set wake the follower. */
static int guests_arm(struct reactor *r, int op, bool armed)
{
    struct epoll_event e = { .events = armed ? EPOLLIN | EPOLLONESHOT : 0 };

    return epoll_ctl(r->guests.stand_by_fd, op, r->epoll_fd, &e);
}

/* Before the first guest. Lock held. */
static bool guests_prepare(struct reactor *r)
{
    struct reactor_guests *g = &r->guests;
    struct epoll_event e = { .events = EPOLLIN };
    int fd = epoll_create1(EPOLL_CLOEXEC);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

    g->stand_by_fd = fd;
    if (fd >= 0 && timer >= 0 && guests_arm(r, EPOLL_CTL_ADD, false) == 0 &&
        epoll_ctl(fd, EPOLL_CTL_ADD, timer, &e) == 0) {
        g->timer_fd = timer;
        return true;
    }
    if (fd >= 0)
        close(fd);
    if (timer >= 0)
        close(timer);
    g->stand_by_fd = -1;
    return false;
}

/* The first timer, so that it is not missed while no thread leads. Lock held. */
static void guests_set_timer(struct reactor *r)
{
    struct reactor_guests *g = &r->guests;
    struct itimerspec at = { .it_value = { 0, 1 } };
    uint64_t due = r->timers ? r->timers->due_ns : 0;

    if (!due || due == g->timer_ns)
        return;
    g->timer_ns = due;
    at.it_value.tv_sec = (time_t)(due / 1000000000u);
    at.it_value.tv_nsec = (long)(due % 1000000000u);
    timerfd_settime(g->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* ---- the own thread ---- */

/* Takes the lead if no guest has it, nor may be about to. Returns in how many nanoseconds it is to
 * be tried again; 0: with the next event. */
static uint64_t guests_follow(struct reactor_guests *g)
{
    const uint64_t until = g->left_ns + GUEST_AWAY_NS, now = clock_now_ns();

    if (g->led != LED_BY_NOBODY)
        return 0;
    if (now < until)
        return until - now;
    g->led = LED_BY_LOOP;
    return 0;
}

static void guests_stand_by(struct reactor *r)
{
    struct reactor_guests *g = &r->guests;
    struct epoll_event e;
    uint64_t n, ns = 0;
    bool leads = false;

    while (!leads) {
        if (ns)
            nanosleep(&(struct timespec){ 0, (long)ns }, NULL);
        else
            epoll_wait(g->stand_by_fd, &e, 1, -1);
        pthread_mutex_lock(&g->lock);
        if (read(g->timer_fd, &n, sizeof n) > 0)
            g->timer_ns = 0;
        ns = guests_follow(g);
        leads = g->led == LED_BY_LOOP;
        pthread_mutex_unlock(&g->lock);
    }
}

void reactor_let_guest(struct reactor *r)
{
    struct reactor_guests *g = &r->guests;
    bool given;

    pthread_mutex_lock(&g->lock);
    given = atomic_load(&g->wanted);
    if (given) {
        atomic_store(&g->wanted, false);
        g->led = LED_BY_GUEST;
        pthread_cond_broadcast(&g->given);
    }
    pthread_mutex_unlock(&g->lock);
    if (!given)
        return;
    reactor_mine = NULL;
    guests_stand_by(r);
    reactor_mine = r;
}

/* ---- the guest ---- */

/* The one guest that there may be takes the lead, or waits for it: for the end of
 * a round, in which nothing blocks. */
static bool guest_enter(struct reactor *r)
{
    struct reactor_guests *g = &r->guests;

    pthread_mutex_lock(&g->lock);
    if (g->here || (g->stand_by_fd < 0 && !guests_prepare(r))) {
        pthread_mutex_unlock(&g->lock);
        return false;
    }
    g->here = true;
    if (g->led == LED_BY_NOBODY) {
        g->led = LED_BY_GUEST;
        guests_arm(r, EPOLL_CTL_MOD, false);
    } else {
        atomic_store(&g->wanted, true);
        reactor_wake(r);
        while (g->led != LED_BY_GUEST)
            pthread_cond_wait(&g->given, &g->lock);
    }
    pthread_mutex_unlock(&g->lock);
    return true;
}

static void guest_leave(struct reactor *r)
{
    struct reactor_guests *g = &r->guests;

    pthread_mutex_lock(&g->lock);
    g->here = false;
    g->led = LED_BY_NOBODY;
    g->left_ns = clock_now_ns();
    guests_set_timer(r);
    guests_arm(r, EPOLL_CTL_MOD, true);
    if (!reactor_rest(r))
        reactor_wake(r);
    pthread_mutex_unlock(&g->lock);
}

static uint64_t guest_left_ns(const struct tenrec_wait *w)
{
    uint64_t now;

    if (!w->deadline_ns)
        return REACTOR_FOREVER;
    now = clock_now_ns();
    return now < w->deadline_ns ? w->deadline_ns - now : 0;
}

tenrec_status reactor_lead(struct reactor *r, const struct tenrec_wait *w)
{
    struct reactor_source *wake = &r->guests.wake;
    uint64_t ns;

    if (reactor_mine == r || !guest_enter(r))
        return TENREC_EUNSUPPORTED;
    reactor_mine = r;
    *wake = (struct reactor_source){ w->wake_fd, reactor_read_away };
    if (w->wake_fd >= 0)
        reactor_watch(r, wake, EPOLLIN);
    r->guests.wait = w;
    while (!reactor_is_over(r) && (ns = guest_left_ns(w)) > 0)
        reactor_round(r, ns);
    r->guests.wait = NULL;
    if (w->wake_fd >= 0)
        reactor_unwatch(r, wake);
    reactor_mine = NULL;
    guest_leave(r);
    return TENREC_OK;
}
