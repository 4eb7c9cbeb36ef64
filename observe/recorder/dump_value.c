/* SPDX-License-Identifier: Apache-2.0 */
/* dump_value.c - a dump as a value, of this worker or of another one. */
#include "core/base/clock.h"
#include "core/base/memory.h"
#include "observe/recorder/dump.h"
#include "observe/recorder/reporter.h"
#include "rpc/call/calls.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The rows of a value; its texts are of the dump. */
struct dump_rows {
    struct arena arena;
    struct tenrec_value *row; /* owns; one array after the other */
    bool failed;
};

static struct tenrec_value row_make(struct dump_rows *rows, const struct tenrec_entry *field,
                                    size_t n)
{
    struct tenrec_entry *own = arena_new(&rows->arena, n, sizeof *own);

    if (!own) {
        rows->failed = true;
        return tenrec_value_nil();
    }
    memcpy(own, field, n * sizeof *own);
    return tenrec_value_map(own, n);
}

static struct tenrec_value frames_of(struct dump_rows *rows, const struct stack *s)
{
    struct tenrec_value *v = arena_new(&rows->arena, (size_t)s->n + 1, sizeof *v);
    char buf[STACK_FRAME_TEXT];

    for (int i = 0; v && i < s->n; i++) {
        const char *text = arena_text(&rows->arena, stack_frame_text(s, i, buf));
        if (!text)
            rows->failed = true;
        v[i] = tenrec_value_text(text ? text : "");
    }
    if (!v)
        rows->failed = true;
    return tenrec_value_array(v, v ? (size_t)s->n : 0);
}

static int64_t age_ns(const struct dump *d, uint64_t begun_ns)
{
    return !begun_ns ? -1 : begun_ns > d->now_ns ? 0 : (int64_t)(d->now_ns - begun_ns);
}

static struct tenrec_value handler_row(struct dump_rows *rows, const struct dump *d,
                                       const struct dump_handler *h)
{
    static const char *const state[] = { "queued", "runs", "answers later" };
    const struct tenrec_entry field[] = {
        { "function", tenrec_value_text(h->function) },
        { "caller", tenrec_value_text(h->caller) },
        { "call", tenrec_value_int(h->id) },
        { "state", tenrec_value_text(state[h->state]) },
        { "ns", tenrec_value_int(age_ns(d, h->begun_ns)) },
        { "thread", tenrec_value_int(h->stack.thread) },
        { "thread_name", tenrec_value_text(h->stack.thread_name) },
        { "kernel", tenrec_value_text(h->stack.state) },
        { "no_stack",
          tenrec_value_text(h->state == DUMP_RUNS ? stack_result_text(h->stack.result) : "") },
        { "stack", frames_of(rows, &h->stack) },
    };

    return row_make(rows, field, sizeof field / sizeof field[0]);
}

static struct tenrec_value wait_row(struct dump_rows *rows, const struct dump *d,
                                    const struct dump_wait *c)
{
    const int64_t left = c->deadline_ns == CLOCK_NEVER ? -1
                         : c->deadline_ns < d->now_ns  ? 0
                                                       : (int64_t)(c->deadline_ns - d->now_ns);
    const struct tenrec_entry field[] = {
        { "function", tenrec_value_text(c->function) },
        { "callee", tenrec_value_text(c->callee) },
        { "call", tenrec_value_int(c->id) },
        { "ns", tenrec_value_int(age_ns(d, c->begun_ns)) },
        { "left_ns", tenrec_value_int(left) },
    };

    return row_make(rows, field, sizeof field / sizeof field[0]);
}

tenrec_status dump_value(struct tenrec_worker *w, value_fn *fn, void *arg, tenrec_error *err)
{
    struct dump_rows rows = { .failed = false };
    struct dump d;
    tenrec_status st = dump_make(&d, w, true, err);

    if (st == TENREC_OK) {
        rows.row = memory_new(d.n_handlers + d.n_waits + 1, sizeof *rows.row);
        rows.failed = !rows.row;
    }
    for (size_t i = 0; st == TENREC_OK && !rows.failed && i < d.n_handlers; i++)
        rows.row[i] = handler_row(&rows, &d, &d.handler[i]);
    for (size_t i = 0; st == TENREC_OK && !rows.failed && i < d.n_waits; i++)
        rows.row[d.n_handlers + i] = wait_row(&rows, &d, &d.wait[i]);
    if (st == TENREC_OK && rows.failed)
        st = memory_fail(err);
    if (st == TENREC_OK) {
        const struct tenrec_entry field[] = {
            { "worker", tenrec_value_text(w->self.name) },
            { "pid", tenrec_value_int(getpid()) },
            { "recorder", tenrec_value_bool(d.on) },
            { "handlers", tenrec_value_array(rows.row, d.n_handlers) },
            { "more_handlers", tenrec_value_int((int64_t)d.more_handlers) },
            { "waits", tenrec_value_array(rows.row + d.n_handlers, d.n_waits) },
            { "more_waits", tenrec_value_int((int64_t)d.more_waits) },
            { "events", tenrec_value_int((int64_t)d.n_events) },
            { "trace", tenrec_value_text(d.trace) },
        };
        const struct tenrec_value v = tenrec_value_map(field, sizeof field / sizeof field[0]);
        st = fn(arg, &v, err);
    }
    free(rows.row);
    arena_finish(&rows.arena);
    dump_finish(&d);
    return st;
}

/* ---- the function ------------------------------------------------------------------ */

struct dump_answer {
    struct report report; /* first */
    struct tenrec_call *call;
};

static void dump_answer_run(struct report *r)
{
    struct tenrec_call *call = ((struct dump_answer *)(void *)r)->call;
    tenrec_error err;
    tenrec_status st = dump_value(call->worker, function_return, call, &err);

    free(r);
    tenrec_call_finish(call, st == TENREC_OK ? NULL : &err);
}

/* Answers later, from the reporter's thread: the pool may be full of the handlers that are sought.
 */
static tenrec_status dump_answer(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct dump_answer *a = memory_new(1, sizeof *a);
    tenrec_status st;

    (void)arg;
    if (!a)
        return memory_fail(err);
    *a = (struct dump_answer){ { .run = dump_answer_run }, call };
    st = reporter_run(&a->report, REPORT_ASKED, err);
    if (st != TENREC_OK)
        free(a);
    return st;
}

tenrec_status recorder_serve(struct functions *f, tenrec_error *err)
{
    return functions_add(f, DUMP_FUNCTION, dump_answer, NULL, TENREC_INLINE | TENREC_LATER, err);
}
