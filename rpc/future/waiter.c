/* SPDX-License-Identifier: Apache-2.0 */
/* waiter.c - eventfds are recycled, as a synchronous call must not open and close one. A recycled
 * eventfd may still be readable (its thread was woken before it slept); the next thread then polls
 * once more than needed, which is cheaper than a read in every call. */
#include "rpc/future/future.h"

#include "core/base/clock.h"
#include "core/base/forks.h"
#include "core/base/threads.h"
#include "rpc/future/thread_state.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { KEPT_MAX = 64 };

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static int kept[KEPT_MAX];
static unsigned n_kept;

/* Of this thread; 0: none. */
static _Thread_local int spare_fd STATIC_TLS;
static _Thread_local struct thread_end spare_end;

static void spare_close(void)
{
    if (spare_fd > 0)
        close(spare_fd);
    spare_fd = 0;
}

/* A child of fork must not share its parent's descriptors. */
static void forget_kept(void)
{
    spare_close();
    while (n_kept > 0)
        close(kept[--n_kept]);
    pthread_mutex_init(&kept_lock, NULL);
}

static struct fork_hook fork_hook = { .child = forget_kept };

/* This thread has no spare one. */
static int fd_take(void)
{
    int fd = -1;

    forks_follow(&fork_hook);
    pthread_mutex_lock(&kept_lock);
    if (n_kept > 0)
        fd = kept[--n_kept];
    pthread_mutex_unlock(&kept_lock);
    return fd >= 0 ? fd : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

/* This thread has a spare one already, or may keep none. */
static void fd_keep(int fd)
{
    pthread_mutex_lock(&kept_lock);
    if (n_kept < KEPT_MAX) {
        kept[n_kept++] = fd;
        fd = -1;
    }
    pthread_mutex_unlock(&kept_lock);
    if (fd >= 0)
        close(fd);
}

void waiter_init(struct waiter *w, bool with_fd)
{
    atomic_init(&w->woken, 0);
    w->by_self = false;
    w->fd = -1;
    if (with_fd && spare_fd > 0) {
        w->fd = spare_fd;
        spare_fd = 0;
    } else if (with_fd) {
        w->fd = fd_take();
    }
}

void waiter_wake(struct waiter *w)
{
    const uint64_t one = 1;

    if (thread_state.waiter == w) { /* this thread is the waiter, and awake */
        w->by_self = true;
        atomic_store_explicit(&w->woken, 1, memory_order_release);
        return;
    }
    if (atomic_exchange(&w->woken, 1) != 0)
        return;
    if (w->fd >= 0) {
        while (write(w->fd, &one, sizeof one) < 0 && errno == EINTR)
            ;
    } else {
        syscall(SYS_futex, &w->woken, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
}

bool waiter_woken(const struct waiter *w)
{
    return atomic_load_explicit(&w->woken, memory_order_acquire) != 0;
}

bool waiter_sleep(struct waiter *w, uint64_t deadline_ns)
{
    struct timespec ts, *limit;

    while (!waiter_woken(w)) {
        limit = clock_left_ts(deadline_ns, &ts);
        if (limit && limit->tv_sec == 0 && limit->tv_nsec == 0)
            return false;
        if (w->fd >= 0) {
            struct pollfd p = { .fd = w->fd, .events = POLLIN };
            uint64_t n;
            if (ppoll(&p, 1, limit, NULL) > 0 && read(w->fd, &n, sizeof n) < 0)
                continue;
        } else {
            syscall(SYS_futex, &w->woken, FUTEX_WAIT_PRIVATE, 0, limit, NULL, 0);
        }
    }
    return true;
}

void waiter_finish(struct waiter *w)
{
    if (w->fd > 0 && spare_fd == 0 && (spare_end.fn || thread_end_add(&spare_end, spare_close)))
        spare_fd = w->fd;
    else if (w->fd >= 0)
        fd_keep(w->fd);
    w->fd = -1;
}
