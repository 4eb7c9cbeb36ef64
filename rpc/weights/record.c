/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - the keeper's functions: a request changes its set, and is answered when it can be. */
#include "rpc/weights/record.h"

#include "rpc/weights/record_set.h"

#include "core/base/clock.h"
#include "core/base/loop.h"
#include "core/base/memory.h"

#include <stdlib.h>

enum {
    ASK_MOST_MS = 15000, /* then its caller asks again: a dead one does not */
};

/* ---- requests ----------------------------------------------------------------------- */

/* Returns true if the ask has an answer. What the caller of an expired publish has added ends. */
static bool ask_try(struct later *l, void *record)
{
    struct record_ask *a = (struct record_ask *)(void *)l;
    const struct record *r = record;

    if (a->later.why.code != TENREC_OK || !a->op->ready)
        return true;
    if (!tenrec_call_canceled(a->later.call) && !clock_passed(a->until_ns)) {
        const bool ready = a->op->ready(a);
        if (!ready && r->timer)
            loop_timer_arm(r->timer, a->until_ns);
        return ready;
    }
    record_remove_part(a->set, a);
    tenrec_fail(&a->later.why, TENREC_ETIMEDOUT, "version %lld of '%s' is not there",
                (long long)a->version, a->set->name);
    return true;
}

/* After an event of the set: moves the asks that have an answer to *done. */
static void set_try(struct record *r, struct record_set *s, struct later **done)
{
    record_set_sweep(s, r->w, clock_now_ns());
    later_try(&s->asks, ask_try, r, done);
    record_set_sweep(s, r->w, clock_now_ns());
}

/* The lock is held. */
static void ask_begin(struct record *r, struct record_ask *a, struct later **done)
{
    struct record_set *s = a->set;

    set_try(r, s, done); /* a publisher that is gone does not count */
    record_forget_former(s, a->worker, a->life);
    a->op->begin(a, &a->later.why);
    later_add(&s->asks, &a->later);
    set_try(r, s, done);
}

/* Takes the ask. */
static void ask_serve(struct record *r, struct record_ask *a, const char *set)
{
    struct later *done = NULL;

    pthread_mutex_lock(&r->lock);
    a->set = r->stopped ? NULL : record_set_get(r, set);
    if (a->set) {
        ask_begin(r, a, &done);
    } else {
        done = &a->later;
        if (r->stopped)
            tenrec_fail(&a->later.why, TENREC_ESHUTDOWN, "the keeper of '%s' shuts down", set);
        else
            memory_fail(&a->later.why);
    }
    pthread_mutex_unlock(&r->lock);
    later_finish(done);
}

/* ---- the functions ------------------------------------------------------------------ */

enum { COMMON = 4 }; /* arguments that all have */

static tenrec_status ask_read(struct record_ask *a, const char **ret_set, tenrec_error *err)
{
    size_t n;
    const struct tenrec_value *v = tenrec_call_args(a->later.call, &n);
    const struct tenrec_worker_info from = tenrec_call_from(a->later.call);
    tenrec_status st;

    if (from.id == TENREC_ANONYMOUS)
        return tenrec_fail(err, TENREC_EUNSUPPORTED, "only members of the group share weights");
    if (n < COMMON)
        return tenrec_fail(err, TENREC_EINVAL, "takes %d arguments or more, got %zu", COMMON, n);
    a->worker = from.name;
    st = tenrec_value_unpack(v, COMMON, err, "siii", ret_set, &a->life, &a->handle, &a->number);
    return st == TENREC_OK ? a->op->read(a, v + COMMON, n - COMMON, err) : st;
}

static uint64_t ask_until(const struct tenrec_call *call)
{
    const int64_t ms = tenrec_call_time_left(call);

    return clock_deadline_ms(ms < ASK_MOST_MS ? (uint64_t)ms : ASK_MOST_MS);
}

static tenrec_status record_function(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct record_ask *a = memory_new(1, sizeof *a);
    const char *set;
    tenrec_status st;

    if (!a)
        return memory_fail(err);
    a->op = arg;
    a->later.call = call;
    a->until_ns = ask_until(call);
    st = ask_read(a, &set, err);
    if (st == TENREC_OK)
        ask_serve(record_of(tenrec_call_worker(call)), a, set);
    else
        free(a);
    return st;
}

tenrec_status record_serve(struct functions *f, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (size_t i = 0; record_ops[i].name && st == TENREC_OK; i++)
        st = functions_add(f, record_ops[i].name, record_function,
                           (void *)(uintptr_t)&record_ops[i], TENREC_INLINE | TENREC_LATER, err);
    return st;
}

/* ---- its life ----------------------------------------------------------------------- */

void record_init(struct record *r, struct tenrec_worker *w)
{
    r->w = w;
    pthread_mutex_init(&r->lock, NULL);
    r->stopped = true;
}

static void record_clear(struct record *r)
{
    struct record_set *s;

    while ((s = r->sets) != NULL) {
        r->sets = s->next;
        record_set_free(s);
    }
}

void record_finish(struct record *r)
{
    record_clear(r);
    pthread_mutex_destroy(&r->lock);
}

/* On the loop. */
static void record_time(void *arg)
{
    struct later *done = NULL;
    struct record *r = arg;

    pthread_mutex_lock(&r->lock);
    for (struct record_set *s = r->sets; s && !r->stopped; s = s->next)
        set_try(r, s, &done);
    pthread_mutex_unlock(&r->lock);
    later_finish(done);
}

tenrec_status record_start(struct record *r, tenrec_error *err)
{
    tenrec_status st = loop_timer_new(r->w->loop, record_time, r, &r->timer, err);

    if (st != TENREC_OK)
        return st;
    pthread_mutex_lock(&r->lock);
    record_clear(r);
    r->stopped = false;
    pthread_mutex_unlock(&r->lock);
    return TENREC_OK;
}

void record_release(struct record *r)
{
    if (r->timer)
        loop_timer_drop(r->timer);
    r->timer = NULL;
}

void record_stop(struct record *r, const tenrec_error *why)
{
    struct later *done = NULL;

    pthread_mutex_lock(&r->lock);
    r->stopped = true;
    for (struct record_set *s = r->sets; s; s = s->next)
        later_fail(&s->asks, why, &done);
    pthread_mutex_unlock(&r->lock);
    later_finish(done);
}

struct record_counts record_count(struct record *r)
{
    struct record_counts c = { 0 };

    pthread_mutex_lock(&r->lock);
    for (const struct record_set *s = r->sets; s; s = s->next) {
        c.sets++;
        for (const struct record_version *v = s->versions; v; v = v->next)
            c.versions++;
        for (const struct record_holder *h = s->holders; h; h = h->next)
            c.leases += h->state == HOLDER_PULLS;
    }
    pthread_mutex_unlock(&r->lock);
    return c;
}
