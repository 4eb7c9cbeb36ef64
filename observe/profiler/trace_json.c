/* SPDX-License-Identifier: Apache-2.0 */
/* trace_json.c - writes a session as a Chrome trace, for ui.perfetto.dev.
 *
 * A worker is a process of the trace, a thread a thread. The time that a thread spends in an event
 * is a slice of its row; an event that lasts longer (an asynchronous call, a function that answers
 * later) also has an async slice of the worker. An arrow leads from each call to its function. */
#include "observe/profiler/sessions.h"

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/memory.h"
#include "observe/profiler/span.h"

#include <errno.h>
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
    struct json json;
    bool failed; /* no memory */
    struct row *row;
    size_t rows, room;
    int64_t *call; /* arrows of the calls in this trace, sorted; owns */
    size_t calls;
};

/* Not 0, which readers of traces show as the idle process. */
static int64_t trace_json_process(tenrec_peer worker)
{
    return worker >= 0 ? worker + 1 : STRANGER;
}

/* The start of an entry, up to its process. */
static void entry_begin(struct writer *w, const char *phase, const char *name, tenrec_peer worker)
{
    struct json *j = &w->json;

    json_begin(j, NULL, '{');
    json_text(j, "ph", phase);
    json_text(j, "name", name);
    json_int(j, "pid", trace_json_process(worker));
}

static void entry_end(struct writer *w)
{
    json_end(&w->json, '{');
}

/* Names a process or a thread. */
static void entry_name(struct writer *w, const char *what, const struct tenrec_event *e,
                       const char *name)
{
    entry_begin(w, "M", what, e->worker_id);
    json_int(&w->json, "tid", (int64_t)e->thread);
    json_begin(&w->json, "args", '{');
    json_text(&w->json, "name", name);
    json_end(&w->json, '{');
    entry_end(w);
}

static void worker_put(struct writer *w, const struct tenrec_event *e)
{
    entry_name(w, "process_name", e, *e->worker_name ? e->worker_name : "no member");
    entry_begin(w, "M", "process_sort_index", e->worker_id);
    json_begin(&w->json, "args", '{');
    json_int(&w->json, "sort_index", trace_json_process(e->worker_id));
    json_end(&w->json, '{');
    entry_end(w);
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
    if (worker)
        worker_put(w, e);
    entry_name(w, "thread_name", e, *e->thread_name ? e->thread_name : "thread");
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

static void args_put(struct json *j, const struct tenrec_event *e)
{
    json_begin(j, "args", '{');
    json_text(j, "name", e->name);
    json_text(j, "status", tenrec_status_name((tenrec_status)e->status));
    if (e->kind != TENREC_EVENT_MARK) {
        json_int(j, "caller", e->caller_id);
        json_int(j, "call", e->call_id);
        json_int(j, "sent_bytes", (int64_t)e->sent_bytes);
        json_int(j, "received_bytes", (int64_t)e->received_bytes);
        if (e->kind == TENREC_EVENT_SERVE)
            json_micros(j, "queue_us", e->queue_ns);
        else if (e->wire_ns > 0)
            json_micros(j, "wire_us", e->wire_ns);
    }
    json_end(j, '{');
}

/* The id of an arrow, the same at both ends, of 53 bits for JavaScript: 16 of the caller, 37 of the
 * message. */
static int64_t arrow_of(const struct tenrec_event *e)
{
    return (int64_t)(((uint64_t)(e->caller_id + 1) & 0xffff) << 37 |
                     ((uint64_t)e->call_id & ((UINT64_C(1) << 37) - 1)));
}

static int by_number(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return (a > b) - (a < b);
}

static bool has_call(const struct writer *w, const struct tenrec_event *e)
{
    const int64_t arrow = arrow_of(e);

    return w->calls > 0 && bsearch(&arrow, w->call, w->calls, sizeof arrow, by_number);
}

/* The start of an entry of an event, up to its time. */
static void event_begin(struct writer *w, const char *phase, const char *name, const char *category,
                        const struct tenrec_event *e, uint64_t ns)
{
    entry_begin(w, phase, name, e->worker_id);
    json_text(&w->json, "cat", category);
    json_int(&w->json, "tid", (int64_t)e->thread);
    json_micros(&w->json, "ts", ns);
}

static void put_arrow_end(struct writer *w, const char *phase, const struct tenrec_event *e)
{
    event_begin(w, phase, "call", "rpc", e, e->start_ns);
    json_int(&w->json, "id", arrow_of(e));
    if (*phase == 'f')
        json_text(&w->json, "bp", "e");
    entry_end(w);
}

static void put_event(struct writer *w, const struct tenrec_event *e, size_t number, bool part)
{
    static const char *const kind[] = { "call", "serve", "mark" };
    const char *cat = kind[e->kind], *name = e->name, *last;
    struct row *row = row_of(w, e);

    if (!row) {
        w->failed = true;
        return;
    }
    while ((last = strstr(name, SPAN_REMOTE)))
        name = last + strlen(SPAN_REMOTE);
    event_begin(w, "X", name, cat, e, e->start_ns);
    json_micros(&w->json, "dur", slice_ns(row, e));
    args_put(&w->json, e);
    entry_end(w);
    if (e->kind == TENREC_EVENT_CALL && e->call_id >= 0)
        put_arrow_end(w, "s", e);
    if (e->kind == TENREC_EVENT_SERVE && (part || has_call(w, e)))
        put_arrow_end(w, "f", e);
    for (int end = 0; end < 2 && e->run_ns < e->duration_ns; end++) {
        event_begin(w, end ? "e" : "b", name, cat, e, e->start_ns + (end ? e->duration_ns : 0));
        json_textf(&w->json, "id", "%lld.%zu", (long long)trace_json_process(e->worker_id), number);
        entry_end(w);
    }
}

/* Lists the calls of this trace, so that no arrow lacks its start. */
static bool list_calls(struct writer *w, const struct tenrec_profiler *p)
{
    w->call = memory_new(p->events->n ? p->events->n : 1, sizeof *w->call);
    if (!w->call)
        return false;
    for (size_t i = 0; i < p->events->n; i++)
        if (p->events->event[i]->kind == TENREC_EVENT_CALL)
            w->call[w->calls++] = arrow_of(p->events->event[i]);
    qsort(w->call, w->calls, sizeof *w->call, by_number);
    return true;
}

static void put_all(struct writer *w, const struct tenrec_profiler *p, bool part)
{
    struct json *j = &w->json;

    json_begin(j, NULL, '{');
    json_text(j, "displayTimeUnit", "ns");
    json_begin(j, "otherData", '{');
    json_textf(j, "writer", "tenrec %s", tenrec_version_text());
    json_int(j, "clock_ns", (int64_t)p->start_ns);
    json_int(j, "dropped", (int64_t)p->events->dropped);
    json_end(j, '{');
    json_begin(j, "traceEvents", '[');
    for (size_t i = 0; i < p->events->n && !w->failed && !ferror(j->to); i++)
        put_event(w, p->events->event[i], i, part);
    json_end(j, '[');
    json_end(j, '{');
    fputc('\n', j->to);
}

tenrec_status trace_json_write(const struct tenrec_profiler *p, const char *path, bool part,
                               tenrec_error *err)
{
    struct writer w = { .failed = false };
    struct file_limit held;
    int fd, cause;
    tenrec_status st = private_file_open(path, PRIVATE_FILE_NAMED, &fd, err);

    if (st != TENREC_OK)
        return st;
    w.json.to = fdopen(fd, "w");
    if (!w.json.to) {
        close(fd);
        return memory_fail(err);
    }
    file_limit_hold(&held);
    errno = 0;
    if (part || list_calls(&w, p))
        put_all(&w, p, part);
    else
        w.failed = true;
    w.failed = w.failed || ferror(w.json.to);
    cause = errno ? errno : ENOMEM;
    free(w.call);
    free(w.row);
    if (fclose(w.json.to) != 0 && !w.failed) {
        w.failed = true;
        cause = errno;
    }
    file_limit_release(&held);
    if (!w.failed)
        return TENREC_OK;
    return cause == ENOMEM ? memory_fail(err)
                           : file_limit_fail(err, cause, "cannot write the trace '%s'", path);
}
