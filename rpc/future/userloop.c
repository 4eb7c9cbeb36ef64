/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/future/worker.h"

#include "rpc/future/future.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

void userloop_init(struct userloop *u)
{
    pthread_mutex_init(&u->lock, NULL);
    u->first = NULL;
    u->last = &u->first;
    atomic_init(&u->fd, -1);
}

static struct future_callback *userloop_drain(struct userloop *u)
{
    struct future_callback *first;
    uint64_t n;

    pthread_mutex_lock(&u->lock);
    first = u->first;
    u->first = NULL;
    u->last = &u->first;
    if (first && read(atomic_load(&u->fd), &n, sizeof n) < 0 && errno != EAGAIN)
        abort(); /* the program closed our eventfd */
    pthread_mutex_unlock(&u->lock);
    return first;
}

void userloop_finish(struct userloop *u)
{
    int fd = atomic_load(&u->fd);

    if (fd >= 0) {
        future_callbacks_run(userloop_drain(u));
        close(fd);
    }
    pthread_mutex_destroy(&u->lock);
}

bool userloop_wanted(struct tenrec_worker *w)
{
    return atomic_load_explicit(&w->userloop.fd, memory_order_acquire) >= 0;
}

void userloop_push(struct tenrec_worker *w, struct future_callback *first,
                   struct future_callback **last)
{
    struct userloop *u = &w->userloop;
    const uint64_t one = 1;
    bool was_empty;

    pthread_mutex_lock(&u->lock);
    was_empty = !u->first;
    *u->last = first;
    u->last = last;
    if (was_empty)
        while (write(atomic_load(&u->fd), &one, sizeof one) < 0 && errno == EINTR)
            ;
    pthread_mutex_unlock(&u->lock);
}

tenrec_status tenrec_worker_get_fd(struct tenrec_worker *w, int *ret_fd, tenrec_error *err)
{
    int fd = atomic_load(&w->userloop.fd), none = -1;

    *ret_fd = -1;
    if (fd < 0) {
        fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (fd < 0)
            return tenrec_fail_errno(err, TENREC_EOS, errno, "cannot make an eventfd");
        if (!atomic_compare_exchange_strong(&w->userloop.fd, &none, fd)) {
            close(fd); /* another thread was first */
            fd = none;
        }
    }
    *ret_fd = fd;
    return TENREC_OK;
}

size_t tenrec_worker_dispatch(struct tenrec_worker *w)
{
    if (atomic_load(&w->userloop.fd) < 0)
        return 0;
    return future_callbacks_run(userloop_drain(&w->userloop));
}
