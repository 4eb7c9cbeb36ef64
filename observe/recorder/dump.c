/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/recorder/dump.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "observe/recorder/recorder.h"
#include "rpc/call/calls.h"

#include <stdlib.h>
#include <string.h>

struct dump_filling {
    struct dump *dump;
    struct tenrec_worker *worker;
    bool failed;
};

/* ---- handlers ---------------------------------------------------------------- */

static struct dump_handler *handler_add(struct dump_filling *f)
{
    struct dump *d = f->dump;

    if (d->n_handlers == DUMP_MAX) {
        d->more_handlers++;
        return NULL;
    }
    d->handler[d->n_handlers].worker = f->worker->self.name;
    return &d->handler[d->n_handlers++];
}

static const char *text_copy(struct dump_filling *f, const char *text)
{
    char clean[256];
    const char *copy;

    utf8_clean(text, strlen(text), clean, sizeof clean);
    copy = arena_text(&f->dump->texts, clean);
    if (!copy)
        f->failed = true;
    return copy ? copy : "";
}

static void on_active(void *arg, struct tenrec_call *c)
{
    struct dump_filling *f = arg;
    struct dump_handler *h;

    if (strcmp(c->function->name, DUMP_FUNCTION) == 0 || !(h = handler_add(f)))
        return;
    h->function = text_copy(f, c->function->name);
    h->caller = peers_name(&f->worker->peers, c->from);
    h->id = c->key.id;
    h->stack.thread = atomic_load_explicit(&c->thread, memory_order_relaxed);
    h->begun_ns = atomic_load_explicit(&c->run_ns, memory_order_relaxed);
    h->state = !h->stack.thread                    ? DUMP_QUEUED
               : c->function->flags & TENREC_LATER ? DUMP_LATER
                                                   : DUMP_RUNS;
}

static void on_inline(void *arg, const struct inline_call *call, bool *reported)
{
    struct dump_filling *f = arg;
    struct dump_handler *h;

    (void)reported;
    if (call->worker != f->worker->start || !(h = handler_add(f)))
        return;
    h->function = text_copy(f, call->function->name);
    h->caller = peers_name(&f->worker->peers, call->from);
    h->id = call->id;
    h->stack.thread = call->thread;
    h->begun_ns = call->began_ns;
    h->state = DUMP_RUNS;
}

/* ---- calls that wait ---------------------------------------------------------- */

/* A call with a limit knows its begin from that. */
static uint64_t wait_begun_ns(const struct future_call *call)
{
    if (call->seen.begun_ns)
        return call->seen.begun_ns;
    if (call->deadline_ns == CLOCK_NEVER || call->timeout_ms == TENREC_TIMEOUT_NONE)
        return 0;
    return call->deadline_ns - (uint64_t)call->timeout_ms * 1000000u;
}

static void on_pending(void *arg, int64_t id, const struct pending_entry *e)
{
    struct dump_filling *f = arg;
    struct dump *d = f->dump;
    const struct future_call *call = &e->future->call;

    if (d->n_waits == DUMP_MAX) {
        d->more_waits++;
        return;
    }
    d->wait[d->n_waits++] = (struct dump_wait){ .worker = f->worker->self.name,
                                                .function = text_copy(f, call->function),
                                                .callee = peers_name(&f->worker->peers, e->to),
                                                .id = id,
                                                .begun_ns = wait_begun_ns(call),
                                                .deadline_ns = e->deadline_ns };
}

/* ---- all ------------------------------------------------------------------------ */

/* Names of workers and peers are copied, as they go with their worker. */
static void dump_own_names(struct dump_filling *f, size_t handlers, size_t waits)
{
    struct dump *d = f->dump;

    for (size_t i = handlers; i < d->n_handlers; i++) {
        d->handler[i].worker = text_copy(f, d->handler[i].worker);
        d->handler[i].caller = text_copy(f, d->handler[i].caller);
    }
    for (size_t i = waits; i < d->n_waits; i++) {
        d->wait[i].worker = text_copy(f, d->wait[i].worker);
        d->wait[i].callee = text_copy(f, d->wait[i].callee);
    }
}

static void dump_worker(struct dump_filling *f, struct tenrec_worker *w)
{
    const size_t handlers = f->dump->n_handlers, waits = f->dump->n_waits;

    f->worker = w;
    active_calls_each(&w->calls->active_calls, on_active, f);
    inline_calls_each(on_inline, f);
    pending_each(&w->calls->pending, on_pending, f);
    dump_own_names(f, handlers, waits);
}

/* Those of the other workers of the process, for the trace. */
static void dump_others(struct dump_filling *f, const struct tenrec_worker *of)
{
    struct dump *d = f->dump;
    const size_t n_handlers = d->n_handlers, n_waits = d->n_waits;
    const size_t more_handlers = d->more_handlers, more_waits = d->more_waits;

    for (struct recorder *r = recorders_held(); of && r; r = r->next)
        if (r->worker != of)
            dump_worker(f, r->worker);
    d->all_handlers = d->n_handlers;
    d->all_waits = d->n_waits;
    d->n_handlers = n_handlers;
    d->n_waits = n_waits;
    d->more_handlers = more_handlers;
    d->more_waits = more_waits;
}

static int by_begin(const void *a, const void *b)
{
    const struct dump_handler *x = a, *y = b;
    const uint64_t l = x->begun_ns ? x->begun_ns : CLOCK_NEVER,
                   r = y->begun_ns ? y->begun_ns : CLOCK_NEVER;

    return (l > r) - (l < r);
}

/* The longest running come first: they have their stacks. */
static void dump_stacks(struct dump *d, bool stacks)
{
    struct stack s[DUMP_STACKS];
    size_t n = 0;

    for (size_t i = 0; i < d->n_handlers && n < DUMP_STACKS; i++)
        if (d->handler[i].state == DUMP_RUNS)
            s[n++] = d->handler[i].stack;
    (stacks ? stacks_take : stacks_look)(s, n);
    n = 0;
    for (size_t i = 0; i < d->n_handlers && n < DUMP_STACKS; i++)
        if (d->handler[i].state == DUMP_RUNS)
            d->handler[i].stack = s[n++];
}

tenrec_status dump_make(struct dump *d, const struct tenrec_worker *of, bool stacks,
                        tenrec_error *err)
{
    struct dump_filling f = { .dump = d };

    *d = (struct dump){ .now_ns = clock_now_ns() };
    d->handler = memory_new(DUMP_MAX, sizeof *d->handler);
    d->wait = memory_new(DUMP_MAX, sizeof *d->wait);
    if (!d->handler || !d->wait)
        return memory_fail(err);
    for (struct recorder *r = recorders_lock(); r; r = r->next)
        if (!of || r->worker == of) {
            stacks = stacks && atomic_load(&r->stacks);
            d->on = d->on || observe_has(r->worker, OBSERVER_RECORDER);
            dump_worker(&f, r->worker);
        }
    dump_others(&f, of);
    qsort(d->handler, d->n_handlers, sizeof *d->handler, by_begin);
    if (!dump_trace(d))
        f.failed = true;
    recorders_unlock();
    dump_stacks(d, stacks);
    return f.failed ? memory_fail(err) : TENREC_OK;
}

void dump_finish(struct dump *d)
{
    arena_finish(&d->texts);
    free(d->handler);
    free(d->wait);
    free(d->trace);
}
