/* SPDX-License-Identifier: Apache-2.0 */
/* drive.c - the driver: the one thread that calls UCX for an agent, moves its operations on and
 * waits for the next.
 *
 * The agent's own thread drives while no other thread does. It gives the drive up before it sleeps,
 * so a thread that waits for an answer becomes the driver without a switch of threads: a guest.
 * There is one guest at a time; it removes UCX's descriptor from the set on which the own thread
 * sleeps and restores it when it leaves. A thread that sends while the own thread sleeps drives for
 * the duration of the send.
 *
 * With progress busy, a guest that leaves skips these steps, which would dominate a small call: it
 * is expected to return. The own thread naps, and becomes the driver if no guest arrived between
 * two naps. */
#include "conn.h"

#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

enum {
    SPIN_NS = 50000,   /* of an adaptive wait */
    WANT_NS = 50000,   /* that a guest spins until the driver makes way */
    SPIN_CREDIT = 8,   /* most of it */
    SPIN_RETRY = 64,   /* waits until a spin is tried again */
    YIELD_ROUNDS = 16, /* of a spin of the own thread */
    NAP_NS = 100000,   /* of the own thread while guests come and go */
};

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* ---- spinning -------------------------------------------------------------------------- */

static void spin_found(struct drive_spin *s)
{
    if (s->since_ns)
        s->credit = s->credit < 0 ? 0 : s->credit < SPIN_CREDIT ? s->credit + 1 : SPIN_CREDIT;
    s->since_ns = 0;
}

/* Returns true if the driver polls once more, false if it sleeps now. */
static bool spin_more(struct drive_spin *s, enum drive_wait how)
{
    if (how != WAIT_ADAPTIVE)
        return how == WAIT_BUSY;
    if (s->since_ns == 0) {
        if (s->credit < 0 && ++s->tries % SPIN_RETRY != 0)
            return false;
        s->since_ns = clock_now_ns();
    }
    if (clock_now_ns() - s->since_ns < SPIN_NS)
        return true;
    s->since_ns = 0;
    if (s->credit > -SPIN_CREDIT)
        s->credit--;
    return false;
}

/* ---- the turn -------------------------------------------------------------------------- */

int drive_waker(struct ucx *u)
{
    const int fd = u->asleep_fd;

    u->asleep_fd = -1;
    return fd;
}

void drive_wake(int fd)
{
    if (fd >= 0)
        eventfd_write(fd, 1);
}

bool drive_is_mine(const struct ucx *u)
{
    return u->driven && pthread_equal(pthread_self(), u->driver);
}

/* With the lock. */
static void drive_begin(struct ucx *u)
{
    u->driven = true;
    u->driver = pthread_self();
    u->asleep_fd = -1;
}

/* With the lock. */
static bool has_work(const struct ucx *u)
{
    return u->out_first || u->detached || u->resumed || atomic_load(&u->stopping);
}

bool drive_try(struct ucx *u)
{
    if (u->driven || (u->asleep_fd != u->own_fd && !u->lent))
        return false;
    drive_begin(u);
    return true;
}

/* Has the own thread wake at UCX's events, or not. */
static void watch(struct ucx *u, bool on)
{
    struct epoll_event e = { .events = on ? EPOLLIN : 0, .data.fd = u->event_fd };

    if (u->event_fd >= 0 && u->watched != on)
        epoll_ctl(u->epoll_fd, EPOLL_CTL_MOD, u->event_fd, &e);
    u->watched = on;
}

/* Returns true if events will show at event_fd from now on, false if work is left. */
static bool arm(struct ucx *u)
{
    return u->event_fd >= 0 && ucp_worker_arm(u->worker) == UCS_OK;
}

/* The own thread naps, or is woken to do so: no event wakes it. */
static void drive_lend(struct ucx *u)
{
    int fd = -1;

    pthread_mutex_lock(&u->lock);
    /* A guest that drove before the own thread began: that waits without a limit, as nothing was
     * lent yet. */
    if (atomic_load(&u->wanted) || (u->own_waits && !u->lent))
        pthread_cond_broadcast(&u->given);
    u->driven = false;
    u->lent = true;
    u->visits++;
    u->asleep_fd = -1;
    if (!u->own_waits)
        fd = u->own_fd;
    pthread_mutex_unlock(&u->lock);
    drive_wake(fd);
}

void drive_leave(struct ucx *u)
{
    bool idle;
    int fd = -1;

    if (u->how == WAIT_BUSY) {
        drive_lend(u);
        return;
    }
    watch(u, true);
    idle = arm(u) && !u->ready && !u->broken && !u->ended_first && u->unknown == 0;
    pthread_mutex_lock(&u->lock);
    u->driven = false;
    if (u->own_waits || atomic_load(&u->wanted))
        pthread_cond_broadcast(&u->given);
    if (idle && !has_work(u))
        u->asleep_fd = u->own_fd;
    else if (!u->own_waits)
        fd = u->own_fd;
    pthread_mutex_unlock(&u->lock);
    drive_wake(fd);
}

/* ---- the own thread -------------------------------------------------------------------- */

/* With the lock. */
static void own_nap(struct ucx *u)
{
    const uint64_t visits = u->visits;

    clock_cond_wait(&u->given, &u->lock, clock_now_ns() + NAP_NS);
    if (u->visits == visits && !u->driven && !atomic_load(&u->wanted))
        u->lent = false;
}

static void own_begin(struct ucx *u)
{
    pthread_mutex_lock(&u->lock);
    u->own_waits = true;
    while (u->driven || atomic_load(&u->wanted) || (u->lent && !atomic_load(&u->stopping))) {
        if (u->lent)
            own_nap(u);
        else
            pthread_cond_wait(&u->given, &u->lock);
    }
    u->lent = false;
    u->own_waits = false;
    drive_begin(u);
    pthread_mutex_unlock(&u->lock);
}

/* Gives the drive up, and sleeps until there is something to do. */
static void own_sleep(struct ucx *u)
{
    const int ms = conn_check_deadlines(u);
    struct epoll_event e[2];
    int n_events;
    eventfd_t n;
    bool go, armed;

    if (ms == 0)
        return;
    if (u->how == WAIT_BUSY) { /* to a guest */
        drive_lend(u);
        own_begin(u);
        return;
    }
    watch(u, true);
    armed = arm(u);
    pthread_mutex_lock(&u->lock);
    go = atomic_load(&u->wanted) || (armed && !has_work(u));
    if (go) {
        u->driven = false;
        u->asleep_fd = u->own_fd;
    }
    if (go && atomic_load(&u->wanted))
        pthread_cond_broadcast(&u->given);
    pthread_mutex_unlock(&u->lock);
    if (!go)
        return;
    n_events = armed ? epoll_wait(u->epoll_fd, e, 2, ms) : 0;
    for (int i = 0; i < n_events; i++)
        if (e[i].data.fd == u->own_fd)
            eventfd_read(u->own_fd, &n);
    own_begin(u);
}

void *drive_run(void *agent)
{
    struct ucx *u = agent;
    unsigned rounds = 0;

    own_begin(u);
    while (!atomic_load(&u->stopping)) {
        if (progress_step(u)) {
            spin_found(&u->own_spin);
            if (!atomic_load(&u->wanted))
                continue;
        }
        if (atomic_load(&u->wanted) || !spin_more(&u->own_spin, u->how))
            own_sleep(u);
        else if (u->unknown)
            conn_check_deadlines(u);
        else if (++rounds % YIELD_ROUNDS == 0)
            sched_yield(); /* to a thread of the program that has this processor, too */
        else
            relax();
    }
    progress_end_all(u);
    return NULL;
}

/* ---- guests ---------------------------------------------------------------------------- */

static uint64_t guest_until(const struct tenrec_wait *wait)
{
    return wait->deadline_ns ? wait->deadline_ns : CLOCK_NEVER;
}

static bool is_over(const struct ucx *u, const struct tenrec_wait *wait)
{
    return __atomic_load_n(wait->done, __ATOMIC_ACQUIRE) || atomic_load(&u->stopping) ||
           clock_passed(guest_until(wait));
}

/* Until the guest must look again, milliseconds; -1: for ever. */
static int guest_limit(struct ucx *u, const struct tenrec_wait *wait)
{
    const int due = conn_check_deadlines(u), left = clock_left_ms(guest_until(wait));

    return due >= 0 && (left < 0 || due < left) ? due : left;
}

static void guest_sleep(struct ucx *u, const struct tenrec_wait *wait)
{
    struct pollfd fd[] = { { u->event_fd, POLLIN, 0 },
                           { u->guest_fd, POLLIN, 0 },
                           { wait->wake_fd, POLLIN, 0 } };
    const int ms = guest_limit(u, wait);
    eventfd_t n;
    bool idle;

    if (ms == 0)
        return;
    pthread_mutex_lock(&u->lock);
    idle = !has_work(u);
    u->asleep_fd = idle ? u->guest_fd : -1;
    pthread_mutex_unlock(&u->lock);
    if (!idle)
        return;
    if (arm(u) && !is_over(u, wait))
        poll(fd, 3, ms);
    pthread_mutex_lock(&u->lock);
    u->asleep_fd = -1;
    pthread_mutex_unlock(&u->lock);
    if (fd[1].revents)
        eventfd_read(u->guest_fd, &n);
    if (wait->wake_fd >= 0 && fd[2].revents)
        eventfd_read(wait->wake_fd, &n);
}

/* Waits until no thread drives, with the lock, which it releases while it waits. The own thread
 * makes way after its step. */
static void guest_want(struct ucx *u, const struct tenrec_wait *wait)
{
    const uint64_t until = u->how == WAIT_SLEEP ? 0 : clock_now_ns() + WANT_NS;

    atomic_store(&u->wanted, true);
    while (u->driven && !is_over(u, wait)) {
        if (clock_now_ns() < until) {
            pthread_mutex_unlock(&u->lock);
            sched_yield();
            pthread_mutex_lock(&u->lock);
        } else {
            clock_cond_wait(&u->given, &u->lock, guest_until(wait));
        }
    }
    atomic_store(&u->wanted, false);
}

/* Returns OK when the calling thread drives, or the wait is over (*ret_drives). */
static tenrec_status guest_begin(struct ucx *u, const struct tenrec_wait *wait, bool *ret_drives)
{
    int wake = -1;
    bool ok;

    *ret_drives = false;
    pthread_mutex_lock(&u->lock);
    ok = u->serving && u->guests == 0 && !drive_is_mine(u);
    if (ok) {
        u->guests = 1;
        if (u->driven)
            guest_want(u, wait);
        if (!u->driven && !atomic_load(&u->stopping)) {
            drive_begin(u);
            *ret_drives = true;
        } else { /* the own thread may have made way */
            u->guests = 0;
            wake = drive_waker(u);
            pthread_cond_broadcast(&u->given);
            pthread_cond_broadcast(&u->moved);
        }
    }
    pthread_mutex_unlock(&u->lock);
    drive_wake(wake);
    return ok ? TENREC_OK : TENREC_EUNSUPPORTED;
}

tenrec_status drive_as_guest(struct ucx *u, const struct tenrec_wait *wait)
{
    bool drives;
    tenrec_status st = guest_begin(u, wait, &drives);

    if (!drives)
        return st;
    watch(u, false);
    while (!is_over(u, wait)) {
        if (progress_step(u))
            spin_found(&u->guest_spin);
        else if (!spin_more(&u->guest_spin, u->how) && u->event_fd >= 0)
            guest_sleep(u, wait);
        else if (u->unknown)
            conn_check_deadlines(u);
        else
            relax();
    }
    drive_leave(u);
    pthread_mutex_lock(&u->lock);
    u->guests = 0;
    pthread_cond_broadcast(&u->moved);
    pthread_mutex_unlock(&u->lock);
    return TENREC_OK;
}
