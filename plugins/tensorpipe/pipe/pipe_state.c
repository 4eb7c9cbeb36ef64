/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_state.c - references to a pipe, and its states up to the last: broken. */
#include "pipe/pipe.h"

void pipe_ref(struct pipe *p)
{
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
}

void pipe_unref(struct pipe *p)
{
    if (p && atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) == 1)
        reactor_defer(&p->ep->reactor, &p->end.free_task);
}

void pipe_post(struct pipe *p, struct reactor_task *t)
{
    pipe_ref(p);
    if (!reactor_post(&p->ep->reactor, t))
        pipe_unref(p);
}

void pipe_fail(struct pipe *p, const tenrec_error *why)
{
    pthread_mutex_lock(&p->lock);
    if (pipe_state(p) == PIPE_BROKEN) {
        pthread_mutex_unlock(&p->lock);
        return;
    }
    p->end.was_established = pipe_state(p) == PIPE_ESTABLISHED;
    p->why = *why;
    if (p->to) {
        p->why.worker = p->to->id;
        snprintf(p->why.worker_name, sizeof p->why.worker_name, "%s", p->to->name);
    }
    atomic_store(&p->state, PIPE_BROKEN);
    pthread_mutex_unlock(&p->lock);
    pipe_post(p, &p->end.teardown_task);
}

void pipe_advance(struct pipe *p, enum pipe_state to)
{
    pthread_mutex_lock(&p->lock);
    if (pipe_state(p) != PIPE_BROKEN)
        atomic_store(&p->state, to);
    pthread_mutex_unlock(&p->lock);
}

void pipe_failf(struct pipe *p, tenrec_status code, int os_errno, const char *fmt, ...)
{
    tenrec_error why;
    va_list ap;

    va_start(ap, fmt);
    tenrec_vfail(&why, code, fmt, ap);
    va_end(ap);
    if (os_errno) {
        size_t n = strlen(why.text);

        snprintf(why.text + n, sizeof why.text - n, ": %s", strerror(os_errno));
        why.os_errno = os_errno;
    }
    if (p->to)
        tenrec_error_prefix(&why, "worker \"%s\" at %s", p->to->name, p->to->address);
    else
        tenrec_error_prefix(&why, "caller \"%s\" at %s", p->remote.name, p->remote.text);
    pipe_fail(p, &why);
}
