/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/call/mailbox.h"

#include "core/base/clock.h"
#include "rpc/call/calls.h"
#include "rpc/future/pool.h"

void mailbox_init(struct mailbox *m)
{
    m->first = NULL;
    m->last = &m->first;
    m->calls = 0;
    m->bytes = 0;
    m->closed = false;
    pthread_mutex_init(&m->lock, NULL);
    clock_cond_init(&m->moved);
}

void mailbox_finish(struct mailbox *m)
{
    pthread_cond_destroy(&m->moved);
    pthread_mutex_destroy(&m->lock);
}

tenrec_status mailbox_put(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    const struct pool_limits most = pool_limits(c->worker->calls->pool);
    struct mailbox *m = arg;
    tenrec_status st = TENREC_OK;

    pthread_mutex_lock(&m->lock);
    if (m->closed) {
        st = TENREC_ESHUTDOWN;
    } else if (m->calls >= most.queued || (m->calls > 0 && m->bytes + c->task.bytes > most.bytes)) {
        st = TENREC_EAGAIN;
    } else {
        c->task.next = NULL;
        *m->last = &c->task;
        m->last = &c->task.next;
        m->calls++;
        m->bytes += c->task.bytes;
        pthread_cond_signal(&m->moved);
    }
    pthread_mutex_unlock(&m->lock);
    /* The call may have been received, answered and freed: `c` is not used any more. */
    if (st == TENREC_ESHUTDOWN)
        return tenrec_fail(err, st, "the worker shuts down: '%s' receives no more",
                           c->function->name);
    if (st == TENREC_EAGAIN)
        return tenrec_fail(err, st,
                           "mailbox '%s' is full: as many calls or bytes wait in it as "
                           "worker.max_queued_calls and worker.max_served_bytes permit",
                           c->function->name);
    return TENREC_OK;
}

/* Lock held. */
static struct tenrec_call *mailbox_take(struct mailbox *m)
{
    struct pool_task *t = m->first;

    if (!t)
        return NULL;
    m->first = t->next;
    if (!m->first)
        m->last = &m->first;
    m->calls--;
    m->bytes -= t->bytes;
    return (struct tenrec_call *)t;
}

struct tenrec_call *mailbox_wait(struct mailbox *m, uint64_t until, bool *ret_closed)
{
    struct tenrec_call *c;
    bool timely = true;

    pthread_mutex_lock(&m->lock);
    while (!(c = mailbox_take(m)) && timely && !m->closed)
        timely = clock_cond_wait(&m->moved, &m->lock, until);
    *ret_closed = m->closed;
    pthread_mutex_unlock(&m->lock);
    return c;
}

struct pool_task *mailbox_close(struct mailbox *m)
{
    struct pool_task *held;

    pthread_mutex_lock(&m->lock);
    held = m->first;
    m->first = NULL;
    m->last = &m->first;
    m->calls = 0;
    m->bytes = 0;
    m->closed = true;
    pthread_cond_broadcast(&m->moved);
    pthread_mutex_unlock(&m->lock);
    return held;
}

void mailbox_open(struct mailbox *m)
{
    pthread_mutex_lock(&m->lock);
    m->closed = false;
    pthread_mutex_unlock(&m->lock);
}
