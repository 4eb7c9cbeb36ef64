/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/recorder/recorder.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "observe/recorder/reporter.h"
#include "observe/recorder/stack.h"
#include "rpc/call/calls.h"

#include <stdlib.h>
#include <string.h>

enum {
    STUCK_MAX = 8,     /* handlers of one report; the others are in the next */
    STUCK_LOOKS = 4,   /* in the limit */
    STUCK_GAP_MS = 10, /* at least */
    STUCK_TEXT = 96,
    STUCK_WHERE = 320 /* frames in the log */
};
_Static_assert(STUCK_LOOKS + 1 == (int)RECORDER_MARKS, "the oldest mark is as old as the limit");

struct stuck_handler {
    char function[STUCK_TEXT], caller[TENREC_NAME_MAX + 1];
    uint64_t begun_ns, for_ms;
    bool later;
    struct stack stack;
};

/* What one look finds. */
struct stuck {
    struct report report;         /* first */
    struct tenrec_worker *worker; /* until the look ends */
    char name[TENREC_NAME_MAX + 1];
    bool stacks;
    uint64_t now_ns, after_ns;
    uint64_t from, to; /* calls of ours with these numbers wait for too long */
    size_t n;
    struct stuck_handler handler[STUCK_MAX];
    size_t n_waits;
    char wait[256]; /* describes the first of them */
};

/* ---- the report ----------------------------------------------------------------- */

static void stuck_log(const struct stuck *s, const struct stuck_handler *h)
{
    char where[STUCK_WHERE] = "", frame[STACK_FRAME_TEXT];
    size_t len = 0;

    if (h->later) {
        log_line(TENREC_LOG_WARN, s->name, "'%s', called by '%s', has not answered for %llu ms",
                 h->function, h->caller, (unsigned long long)h->for_ms);
        return;
    }
    for (int i = 0; i < h->stack.n && len < sizeof where; i++)
        len += (size_t)snprintf(where + len, sizeof where - len, "%s%s", i ? " < " : " in ",
                                stack_frame_text(&h->stack, i, frame));
    log_line(TENREC_LOG_WARN, s->name, "'%s', called by '%s', has run for %llu ms; thread %u %s%s",
             h->function, h->caller, (unsigned long long)h->for_ms, h->stack.thread, h->stack.state,
             *where ? where : "");
}

static void stuck_report(struct report *r)
{
    struct stuck *s = (struct stuck *)(void *)r;
    struct stack stack[STUCK_MAX];

    for (size_t i = 0; i < s->n; i++)
        stack[i] = s->handler[i].stack;
    (s->stacks ? stacks_take : stacks_look)(stack, s->n);
    for (size_t i = 0; i < s->n; i++) {
        s->handler[i].stack = stack[i];
        stuck_log(s, &s->handler[i]);
    }
    free(s);
}

/* ---- a look ---------------------------------------------------------------------- */

static void stuck_add(struct stuck *s, const char *function, tenrec_peer caller, uint32_t thread,
                      uint64_t begun_ns, bool later)
{
    struct stuck_handler *h = &s->handler[s->n++];
    const char *name = peers_name(&s->worker->peers, caller);

    snprintf(h->function, sizeof h->function, "%s", function);
    snprintf(h->caller, sizeof h->caller, "%s", *name ? name : "no member");
    h->begun_ns = begun_ns;
    h->for_ms = (s->now_ns - begun_ns) / 1000000u;
    h->later = later;
    h->stack.thread = thread;
}

static bool stuck_since(const struct stuck *s, uint64_t begun_ns)
{
    return s->n < STUCK_MAX && s->now_ns > begun_ns && s->now_ns - begun_ns >= s->after_ns;
}

static void on_active(void *arg, struct tenrec_call *c)
{
    const uint32_t thread = atomic_load_explicit(&c->thread, memory_order_relaxed);
    const uint64_t begun_ns = atomic_load_explicit(&c->run_ns, memory_order_relaxed);
    struct stuck *s = arg;

    if (!thread || c->told_stuck || !stuck_since(s, begun_ns))
        return;
    c->told_stuck = true;
    stuck_add(s, c->function->name, c->from, thread, begun_ns, c->function->flags & TENREC_LATER);
}

static void on_inline(void *arg, const struct inline_call *call, bool *reported)
{
    struct stuck *s = arg;

    if (*reported || call->worker != s->worker->start || !stuck_since(s, call->began_ns))
        return;
    *reported = true;
    stuck_add(s, call->function->name, call->from, call->thread, call->began_ns, false);
}

/* ---- a report that was not queued: its handlers are in a later one ----------------- */

static bool stuck_has(const struct stuck *s, uint32_t thread, uint64_t begun_ns)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->handler[i].begun_ns == begun_ns && s->handler[i].stack.thread == thread)
            return true;
    return false;
}

static void forget_active(void *arg, struct tenrec_call *c)
{
    if (stuck_has(arg, atomic_load_explicit(&c->thread, memory_order_relaxed),
                  atomic_load_explicit(&c->run_ns, memory_order_relaxed)))
        c->told_stuck = false;
}

static void forget_inline(void *arg, const struct inline_call *call, bool *reported)
{
    if (stuck_has(arg, call->thread, call->began_ns))
        *reported = false;
}

static void stuck_forget(struct recorder *r, struct stuck *s)
{
    active_calls_each(&r->worker->calls->active_calls, forget_active, s);
    inline_calls_each(forget_inline, s);
}

/* ---- the look -------------------------------------------------------------------- */

static void on_pending(void *arg, int64_t id, const struct pending_entry *e)
{
    struct stuck *s = arg;

    if (pending_order(id) < s->from || pending_order(id) >= s->to || s->n_waits++)
        return;
    snprintf(s->wait, sizeof s->wait, "a call of '%s' by '%s' waits for %llu ms or more",
             e->future->call.function, s->name, (unsigned long long)(s->after_ns / 1000000u));
}

/* Moves the marks on, and sets the numbers of the calls that are between the last two. */
static void stuck_mark(struct recorder *r, struct stuck *s)
{
    const uint64_t ended = atomic_load(&r->worker->calls->counts.finished);

    s->from = r->mark[RECORDER_MARKS - 1].calls;
    memmove(&r->mark[1], &r->mark[0], sizeof r->mark - sizeof r->mark[0]);
    s->to = r->mark[RECORDER_MARKS - 1].calls;
    r->mark[0].at_ns = s->now_ns;
    r->mark[0].calls = pending_added(&r->worker->calls->pending, ended);
}

static void stuck_look(struct recorder *r, uint64_t now_ns, uint64_t after_ns)
{
    struct stuck *s = memory_new(1, sizeof *s);
    tenrec_error err;
    char reason[STUCK_TEXT + 32];

    if (!s) {
        r->mark[0].at_ns = now_ns;
        return;
    }
    s->report.run = stuck_report;
    s->worker = r->worker;
    s->stacks = atomic_load(&r->stacks);
    s->now_ns = now_ns;
    s->after_ns = after_ns;
    snprintf(s->name, sizeof s->name, "%s", r->worker->self.name);
    stuck_mark(r, s);
    active_calls_each(&r->worker->calls->active_calls, on_active, s);
    inline_calls_each(on_inline, s);
    if (*r->dump_dir && s->from < s->to)
        pending_each(&r->worker->calls->pending, on_pending, s);
    if (*r->dump_dir && s->n + s->n_waits > 0) {
        snprintf(reason, sizeof reason, "'%s' is stuck", s->handler[0].function);
        reporter_write(r->dump_dir, s->name, s->n ? reason : s->wait);
    }
    if (s->n > 0 && reporter_run(&s->report, REPORT_OWN, &err) == TENREC_OK)
        return;
    if (s->n > 0)
        stuck_forget(r, s);
    free(s);
}

static uint64_t stuck_housekeeping(uint64_t now_ns)
{
    const uint64_t least_ms = (uint64_t)STUCK_GAP_MS * STUCK_LOOKS;
    uint64_t next = CLOCK_NEVER;
    struct recorder *r;

    if (!recorders_try_lock(&r)) /* a dump is being made */
        return now_ns + STUCK_GAP_MS * UINT64_C(1000000);
    for (; r; r = r->next) {
        const uint64_t after_ms = atomic_load(&r->stuck_after_ms);
        uint64_t gap_ns, due;
        if (after_ms == TENREC_FOREVER)
            continue;
        gap_ns = (after_ms > least_ms ? after_ms : least_ms) * UINT64_C(1000000) / STUCK_LOOKS;
        if (now_ns - r->mark[0].at_ns >= gap_ns)
            stuck_look(r, now_ns, after_ms * UINT64_C(1000000));
        due = r->mark[0].at_ns + gap_ns;
        next = due < next ? due : next;
    }
    recorders_unlock();
    return next;
}

void stuck_watch(void)
{
    housekeeping_at(stuck_housekeeping, clock_now_ns());
}
