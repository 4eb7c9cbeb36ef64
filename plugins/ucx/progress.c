/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c - the one thread that calls UCX: moves its operations on, sleeps while there are
 * none, and ends them all at shutdown. */
#include "ucx.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>

enum { ROUNDS = 64, FLUSH_MS = 500 };

uint64_t progress_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

bool progress_must_wake(struct ucx *u)
{
    const bool asleep = u->asleep;

    u->asleep = false;
    return asleep;
}

void progress_wake(struct ucx *u)
{
    eventfd_write(u->wake_fd, 1);
}

/* Returns true if something happened: there may be more. */
static bool step(struct ucx *u)
{
    bool any = false;

    for (int i = 0; i < ROUNDS && ucp_worker_progress(u->worker); i++)
        any = true;
    any |= send_queued(u);
    any |= deliver_ready(u); /* before a loss is reported */
    conn_end_detached(u);
    conn_end_broken(u);
    any |= send_complete(u);
    return any;
}

/* Returns true if nothing is queued; from then on other threads write wake_fd. */
static bool fall_asleep(struct ucx *u)
{
    bool asleep;

    pthread_mutex_lock(&u->lock);
    asleep = u->asleep = !u->out_first && !u->detached && !u->resumed && !u->stopping;
    pthread_mutex_unlock(&u->lock);
    return asleep;
}

static void sleep_until_event(struct ucx *u)
{
    struct pollfd fd[] = { { u->event_fd, POLLIN, 0 }, { u->wake_fd, POLLIN, 0 } };
    const int ms = conn_check_deadlines(u);
    eventfd_t n;

    if (ms == 0 || !fall_asleep(u))
        return;
    if (ucp_worker_arm(u->worker) == UCS_OK)
        poll(fd, 2, ms);
    pthread_mutex_lock(&u->lock);
    u->asleep = false;
    pthread_mutex_unlock(&u->lock);
    eventfd_read(u->wake_fd, &n);
}

/* ---- the end ------------------------------------------------------------------------- */

static void on_flushed(void *request, ucs_status_t status, void *arg)
{
    struct ucx *u = arg;

    (void)status;
    u->operations--;
    u->flushes--;
    ucp_request_free(request);
}

/* What was handed to UCX leaves this process, where no message waits for its peer. The end of the
 * sockets does not tell the peer while a child of this process has them, too. */
static void flush_idle(struct ucx *u)
{
    const ucp_request_param_t param = { .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                        UCP_OP_ATTR_FIELD_USER_DATA,
                                        .cb.send = on_flushed,
                                        .user_data = u };
    const uint64_t deadline = progress_now() + FLUSH_MS * UINT64_C(1000000);
    struct conn *c;

    for (uint32_t i = 0; conn_at(u, i, &c); i++) {
        if (!c || !c->ep || !c->known || c->why.code != TENREC_OK)
            continue;
        send_bye(c);
        if (c->queued)
            continue;
        if (UCS_PTR_IS_PTR(ucp_ep_flush_nbx(c->ep, &param))) {
            u->operations++;
            u->flushes++;
        }
    }
    while (u->flushes && progress_now() < deadline)
        ucp_worker_progress(u->worker);
}

static void end_all(struct ucx *u)
{
    const uint64_t deadline = progress_now() + UCX_STOP_MS * UINT64_C(1000000);
    struct conn *c;

    send_fail_queued(u);
    send_complete(u);
    flush_idle(u);
    for (uint32_t i = 0; conn_at(u, i, &c); i++)
        if (c)
            conn_end(c);
    conn_end_detached(u);
    do {
        ucp_worker_progress(u->worker);
        conn_end_broken(u);
        send_complete(u);
    } while (u->operations && progress_now() < deadline);
    deliver_ready(u); /* drops the references of the list: all connections have ended */
}

void *progress_run(void *agent)
{
    struct ucx *u = agent;
    bool stop = false;

    while (!stop) {
        if (!step(u) && !u->busy)
            sleep_until_event(u);
        else if (u->unknown)
            conn_check_deadlines(u);
        pthread_mutex_lock(&u->lock);
        stop = u->stopping;
        pthread_mutex_unlock(&u->lock);
    }
    end_all(u);
    return NULL;
}
