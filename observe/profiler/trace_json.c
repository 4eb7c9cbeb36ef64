/* SPDX-License-Identifier: Apache-2.0 */
/* trace_json.c - writes a session as a Chrome trace, for ui.perfetto.dev.
 *
 * A worker is a process of the trace, a thread a thread. The time that a thread spends in an event
 * is a slice of its row; an event that lasts longer (an asynchronous call, a function that answers
 * later) also has an async slice of the worker. An arrow leads from each call to its function. */
#include "observe/profiler/profiler.h"

#include "core/base/file_limit.h"
#include "core/base/memory.h"
#include "core/base/private_file.h"
#include "observe/profiler/span.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STRANGER = 1 << 16 }; /* the process of an anonymous worker */

enum { DEPTH = 64 }; /* of nested slices */

/* A row whose names are written, and the ends of its open slices. */
struct row {
    tenrec_peer worker;
    uint64_t thread;
    uint64_t end_ns[DEPTH];
    unsigned depth;
};

struct writer {
    FILE *file;
    bool failed, any;
    struct row *row;
    size_t rows, room;
    json_int_t *call; /* arrows of the calls in this trace, sorted; owns */
    size_t calls;
};

/* Takes `o`, as jansson's functions with "new" do. */
static void trace_json_put(struct writer *w, json_t *o)
{
    if (!o || fputs(w->any ? ",\n" : "\n", w->file) < 0 ||
        json_dumpf(o, w->file, JSON_COMPACT | JSON_REAL_PRECISION(15)) != 0)
        w->failed = true;
    w->any = true;
    json_decref(o);
}

/* Not 0, which readers of traces show as the idle process. */
static json_int_t trace_json_process(tenrec_peer worker)
{
    return worker >= 0 ? worker + 1 : STRANGER;
}

static double trace_json_micros(uint64_t ns)
{
    return (double)ns / 1000.0;
}

/* Finds the row of the event, or makes it and writes its names. Returns NULL if out of memory. */
static struct row *row_of(struct writer *w, const struct tenrec_event *e)
{
    struct row *more;
    bool worker = true;

    for (size_t i = w->rows; i > 0; i--) {
        if (w->row[i - 1].worker != e->worker_id)
            continue;
        if (w->row[i - 1].thread == e->thread)
            return &w->row[i - 1];
        worker = false;
    }
    more = memory_grow(w->row, w->rows, &w->room, sizeof *more);
    if (!more)
        return NULL;
    w->row = more;
    w->row[w->rows] = (struct row){ .worker = e->worker_id, .thread = e->thread };
    if (worker) {
        trace_json_put(w, json_pack("{ss ss sI s{ss}}", "ph", "M", "name", "process_name", "pid",
                                    trace_json_process(e->worker_id), "args", "name",
                                    *e->worker_name ? e->worker_name : "no member"));
        trace_json_put(w, json_pack("{ss ss sI s{sI}}", "ph", "M", "name", "process_sort_index",
                                    "pid", trace_json_process(e->worker_id), "args", "sort_index",
                                    trace_json_process(e->worker_id)));
    }
    trace_json_put(w, json_pack("{ss ss sI sI s{ss}}", "ph", "M", "name", "thread_name", "pid",
                                trace_json_process(e->worker_id), "tid", (json_int_t)e->thread,
                                "args", "name", *e->thread_name ? e->thread_name : "thread"));
    return &w->row[w->rows++];
}

/* Returns the length of the event's slice: never 0, since an arrow must end in it, and not beyond
 * the outer slice, as readers drop such slices and the clocks of two workers differ a little. */
static uint64_t slice_ns(struct row *r, const struct tenrec_event *e)
{
    uint64_t end_ns = e->start_ns + (e->run_ns > 0 ? e->run_ns : 1);

    while (r->depth > 0 && r->end_ns[r->depth - 1] <= e->start_ns)
        r->depth--;
    if (r->depth > 0 && r->end_ns[r->depth - 1] < end_ns)
        end_ns = r->end_ns[r->depth - 1];
    if (r->depth < DEPTH)
        r->end_ns[r->depth++] = end_ns;
    return end_ns - e->start_ns;
}

static json_t *args_of(const struct tenrec_event *e)
{
    json_t *args = json_pack("{ss ss}", "name", e->name, "status",
                             tenrec_status_name((tenrec_status)e->status));

    if (!args || e->kind == TENREC_EVENT_RECORD)
        return args;
    json_object_set_new(args, "caller", json_integer(e->caller_id));
    json_object_set_new(args, "call", json_integer(e->call_id));
    json_object_set_new(args, "sent_bytes", json_integer((json_int_t)e->sent_bytes));
    json_object_set_new(args, "received_bytes", json_integer((json_int_t)e->received_bytes));
    if (e->kind == TENREC_EVENT_SERVE)
        json_object_set_new(args, "queue_us", json_real(trace_json_micros(e->queue_ns)));
    else if (e->wire_ns > 0)
        json_object_set_new(args, "wire_us", json_real(trace_json_micros(e->wire_ns)));
    return args;
}

/* The id of an arrow, the same at both ends, of 53 bits for JavaScript: 16 of the caller, 37 of the
 * message. */
static json_int_t arrow_of(const struct tenrec_event *e)
{
    return (json_int_t)(((uint64_t)(e->caller_id + 1) & 0xffff) << 37 |
                        ((uint64_t)e->call_id & ((UINT64_C(1) << 37) - 1)));
}

static int by_number(const void *left, const void *right)
{
    const json_int_t a = *(const json_int_t *)left, b = *(const json_int_t *)right;

    return (a > b) - (a < b);
}

static bool has_call(const struct writer *w, const struct tenrec_event *e)
{
    const json_int_t arrow = arrow_of(e);

    return w->calls > 0 && bsearch(&arrow, w->call, w->calls, sizeof arrow, by_number);
}

static void put_event(struct writer *w, const struct tenrec_event *e, size_t number, bool part)
{
    static const char *const kind[] = { "call", "serve", "record" };
    const char *cat = kind[e->kind], *name = e->name, *last;
    const json_int_t pid = trace_json_process(e->worker_id), tid = (json_int_t)e->thread;
    struct row *row = row_of(w, e);
    char id[64];

    if (!row) {
        w->failed = true;
        return;
    }
    while ((last = strstr(name, SPAN_REMOTE)))
        name = last + strlen(SPAN_REMOTE);
    trace_json_put(w, json_pack("{ss ss ss sI sI sf sf so}", "ph", "X", "name", name, "cat", cat,
                                "pid", pid, "tid", tid, "ts", trace_json_micros(e->start_ns), "dur",
                                trace_json_micros(slice_ns(row, e)), "args", args_of(e)));
    if (e->kind == TENREC_EVENT_CALL && e->call_id >= 0)
        trace_json_put(w, json_pack("{ss ss ss sI sI sI sf}", "ph", "s", "name", "call", "cat",
                                    "rpc", "id", arrow_of(e), "pid", pid, "tid", tid, "ts",
                                    trace_json_micros(e->start_ns)));
    if (e->kind == TENREC_EVENT_SERVE && (part || has_call(w, e)))
        trace_json_put(w, json_pack("{ss ss ss ss sI sI sI sf}", "ph", "f", "bp", "e", "name",
                                    "call", "cat", "rpc", "id", arrow_of(e), "pid", pid, "tid", tid,
                                    "ts", trace_json_micros(e->start_ns)));
    if (e->run_ns >= e->duration_ns)
        return;
    snprintf(id, sizeof id, "%lld.%zu", (long long)pid, number);
    trace_json_put(w, json_pack("{ss ss ss ss sI sI sf}", "ph", "b", "name", name, "cat", cat, "id",
                                id, "pid", pid, "tid", tid, "ts", trace_json_micros(e->start_ns)));
    trace_json_put(w, json_pack("{ss ss ss ss sI sI sf}", "ph", "e", "name", name, "cat", cat, "id",
                                id, "pid", pid, "tid", tid, "ts",
                                trace_json_micros(e->start_ns + e->duration_ns)));
}

/* Lists the calls of this trace, so that no arrow lacks its start. */
static bool list_calls(struct writer *w, const struct tenrec_profiler *p)
{
    w->call = memory_new(p->trace->n ? p->trace->n : 1, sizeof *w->call);
    if (!w->call)
        return false;
    for (size_t i = 0; i < p->trace->n; i++)
        if (p->trace->event[i]->kind == TENREC_EVENT_CALL)
            w->call[w->calls++] = arrow_of(p->trace->event[i]);
    qsort(w->call, w->calls, sizeof *w->call, by_number);
    return true;
}

static void put_all(struct writer *w, const struct tenrec_profiler *p, bool part)
{
    fprintf(w->file,
            "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"writer\":\"tenrec %s\",\"clock_ns\":%llu,"
            "\"dropped\":%llu},\"traceEvents\":[",
            tenrec_version_text(), (unsigned long long)p->start_ns,
            (unsigned long long)p->trace->dropped);
    for (size_t i = 0; i < p->trace->n && !w->failed; i++)
        put_event(w, p->trace->event[i], i, part);
    if (fputs("\n]}\n", w->file) < 0)
        w->failed = true;
}

tenrec_status trace_json_write(const struct tenrec_profiler *p, const char *path, bool part,
                               tenrec_error *err)
{
    struct writer w = { .file = NULL };
    struct file_limit held;
    int fd, cause;
    tenrec_status st = private_file_open(path, PRIVATE_FILE_NAMED, &fd, err);

    if (st != TENREC_OK)
        return st;
    w.file = fdopen(fd, "w");
    if (!w.file) {
        close(fd);
        return memory_fail(err);
    }
    file_limit_hold(&held);
    errno = 0;
    if (part || list_calls(&w, p))
        put_all(&w, p, part);
    else
        w.failed = true;
    cause = errno ? errno : ENOMEM;
    free(w.call);
    free(w.row);
    if (fclose(w.file) != 0 && !w.failed) {
        w.failed = true;
        cause = errno;
    }
    file_limit_release(&held);
    if (!w.failed)
        return TENREC_OK;
    return cause == ENOMEM ? memory_fail(err)
                           : file_limit_fail(err, cause, "cannot write the trace '%s'", path);
}
