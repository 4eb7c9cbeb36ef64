/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/call/calls.h"

#include "core/base/clock.h"

void active_calls_init(struct active_calls *s)
{
    s->calls = NULL;
    pthread_mutex_init(&s->lock, NULL);
    clock_cond_init(&s->empty);
}

void active_calls_finish(struct active_calls *s)
{
    pthread_cond_destroy(&s->empty);
    pthread_mutex_destroy(&s->lock);
}

tenrec_status active_calls_add(struct active_calls *s, struct tenrec_call *c, tenrec_error *err)
{
    struct tenrec_call *former;

    pthread_mutex_lock(&s->lock);
    /* A peer that reuses an id can cancel only one of the two calls. */
    HASH_FIND(hh, s->calls, &c->key, sizeof c->key, former);
    if (former)
        c->key.id = -1 - (int64_t)(uintptr_t)c;
    HASH_ADD(hh, s->calls, key, sizeof c->key, c);
    c->listed = hash_has(c);
    pthread_mutex_unlock(&s->lock);
    return c->listed ? TENREC_OK : tenrec_fail(err, TENREC_ENOMEM, "no memory for a call");
}

void active_calls_remove(struct active_calls *s, struct tenrec_call *c)
{
    if (!c->listed)
        return;
    pthread_mutex_lock(&s->lock);
    HASH_DEL(s->calls, c);
    if (!s->calls)
        pthread_cond_broadcast(&s->empty);
    pthread_mutex_unlock(&s->lock);
}

void active_calls_cancel(struct active_calls *s, const struct active_calls_key *key)
{
    struct tenrec_call *c;

    pthread_mutex_lock(&s->lock);
    HASH_FIND(hh, s->calls, key, sizeof *key, c);
    if (c)
        atomic_store(&c->canceled, true);
    pthread_mutex_unlock(&s->lock);
}

void active_calls_cancel_from(struct active_calls *s, tenrec_peer caller)
{
    struct tenrec_call *c, *next;

    pthread_mutex_lock(&s->lock);
    HASH_ITER(hh, s->calls, c, next)
    if (c->from == caller && c->awaited)
        atomic_store(&c->canceled, true);
    pthread_mutex_unlock(&s->lock);
}

void active_calls_each(struct active_calls *s, active_calls_fn *fn, void *arg)
{
    struct tenrec_call *c, *next;

    pthread_mutex_lock(&s->lock);
    HASH_ITER(hh, s->calls, c, next)
    fn(arg, c);
    pthread_mutex_unlock(&s->lock);
}

size_t active_calls_count_later(struct active_calls *s)
{
    struct tenrec_call *c, *next;
    size_t n = 0;

    pthread_mutex_lock(&s->lock);
    HASH_ITER(hh, s->calls, c, next)
    n += (c->function->flags & TENREC_LATER) != 0;
    pthread_mutex_unlock(&s->lock);
    return n;
}

tenrec_status active_calls_wait(struct active_calls *s, uint64_t deadline_ns, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;
    bool timely = true;

    pthread_mutex_lock(&s->lock);
    while (s->calls && timely)
        timely = clock_cond_wait(&s->empty, &s->lock, deadline_ns);
    if (s->calls)
        st =
            tenrec_fail(err, TENREC_ETIMEDOUT, "function '%s' still runs for a caller%s",
                        s->calls->function->name, HASH_COUNT(s->calls) > 1 ? ", as do others" : "");
    pthread_mutex_unlock(&s->lock);
    return st;
}
