/* SPDX-License-Identifier: Apache-2.0 */
/* dump_trace.c - the events of the ring as a Chrome trace, for ui.perfetto.dev.
 *
 * This process is a process of the trace. A handler is a slice in the row of its thread, a call of
 * ours an async slice, since those of one thread overlap; so is a handler that answers later. All
 * else are instants. What has not ended is not in the ring, but in the tables of its worker; it
 * lasts until the dump, and says so. */
#include "observe/recorder/dump.h"

#include "core/base/json.h"
#include "core/base/memory.h"
#include "observe/recorder/ring.h"

#include <stdio.h>
#include <stdlib.h>
#include <tenrec/version.h>
#include <unistd.h>

struct trace_writer {
    struct json json;
    const struct dump *dump;
    const struct ring_read *event;
    size_t n;
};

/* The start of an entry of the trace, up to its name. */
static void put_head(struct trace_writer *w, const char *phase, const char *category,
                     const char *prefix, const char *name, uint32_t thread, uint64_t time_ns)
{
    struct json *j = &w->json;

    json_begin(j, NULL, '{');
    json_text(j, "ph", phase);
    json_text(j, "cat", category);
    json_int(j, "pid", getpid());
    json_int(j, "tid", thread);
    json_micros(j, "ts", time_ns);
    json_textf(j, "name", "%s%s", prefix, name);
}

static struct tenrec_worker *worker_of(uint16_t start)
{
    struct recorder *r = recorders_held();

    while (r && (uint16_t)r->worker->start != start)
        r = r->next;
    return r ? r->worker : NULL;
}

/* The names of the worker and the peer, where the worker still runs. */
static void put_args(struct json *j, const struct ring_event *e)
{
    const struct tenrec_worker *worker = worker_of(e->worker);

    json_begin(j, "args", '{');
    json_text(j, "worker", worker ? worker->self.name : "");
    json_text(j, "peer", worker && e->peer >= 0 ? peers_name(&worker->peers, e->peer) : "");
    json_int(j, "peer_id", e->peer);
    json_int(j, "call", e->id);
    json_text(j, "status", tenrec_status_name((tenrec_status)e->status));
    json_end(j, '{');
}

/* ---- calls ---------------------------------------------------------------------- */

/* One side of a call: a slice in the row of its thread, or across rows. */
struct slice {
    const char *category, *name;
    uint32_t thread;
    uint64_t begin_ns, ns;
    bool async;
    uint64_t number; /* makes it unique in the file */
};

/* The start of its entry, up to its args. */
static void put_slice(struct trace_writer *w, const struct slice *s)
{
    put_head(w, s->async ? "b" : "X", s->category, "", s->name, s->thread, s->begin_ns);
    if (s->async)
        json_textf(&w->json, "id", "%llu", (unsigned long long)s->number);
    else
        json_micros(&w->json, "dur", s->ns ? s->ns : 1);
}

/* Ends the entry, and the slice across rows by a second one. */
static void put_slice_end(struct trace_writer *w, const struct slice *s)
{
    json_end(&w->json, '{');
    if (!s->async)
        return;
    put_head(w, "e", s->category, "", s->name, s->thread, s->begin_ns + s->ns);
    json_textf(&w->json, "id", "%llu", (unsigned long long)s->number);
    json_end(&w->json, '{');
}

static void put_ended(struct trace_writer *w, const struct ring_read *r)
{
    const struct ring_event *e = &r->event;
    char name[RING_TEXT + 1];
    const struct slice s = { .category = e->kind == RING_CALL ? "call" : "serve",
                             .name = ring_text(e, name),
                             .thread = e->thread,
                             .begin_ns = e->time_ns,
                             .ns = (uint64_t)e->took_ns,
                             .async = e->kind != RING_SERVE,
                             .number = r->number };

    put_slice(w, &s);
    put_args(&w->json, e);
    put_slice_end(w, &s);
}

/* What runs or waits. */
static void put_present(struct trace_writer *w, struct slice *s, const char *worker,
                        const char *peer, int64_t id)
{
    s->ns = w->dump->now_ns > s->begin_ns ? w->dump->now_ns - s->begin_ns : 1;
    put_slice(w, s);
    json_begin(&w->json, "args", '{');
    json_text(&w->json, "worker", worker);
    json_text(&w->json, "peer", peer);
    json_int(&w->json, "call", id);
    json_micros(&w->json, "unfinished_us", s->ns);
    json_end(&w->json, '{');
    put_slice_end(w, s);
}

static void put_all_present(struct trace_writer *w)
{
    const struct dump *d = w->dump;
    uint64_t number = UINT64_C(1) << 62; /* no event has such a number */

    for (size_t i = 0; i < d->all_handlers; i++) {
        const struct dump_handler *h = &d->handler[i];
        struct slice s = { "serve",     h->function, h->stack.thread,
                           h->begun_ns, 0,           h->state == DUMP_LATER,
                           number++ };
        if (h->state != DUMP_QUEUED)
            put_present(w, &s, h->worker, h->caller, h->id);
    }
    for (size_t i = 0; i < d->all_waits; i++) {
        const struct dump_wait *c = &d->wait[i];
        struct slice s = { "call", c->function, 0, c->begun_ns, 0, true, number++ };
        if (c->begun_ns)
            put_present(w, &s, c->worker, c->callee, c->id);
    }
}

/* ---- all -------------------------------------------------------------------------- */

static const char *const instant[NOTES] = {
    [NOTE_STARTED] = "started ",         [NOTE_STOPPED] = "stopped ",
    [NOTE_PEER_LOST] = "lost worker ",   [NOTE_CALLER_LOST] = "lost caller ",
    [NOTE_JOINED] = "joined ",           [NOTE_LEFT] = "left ",
    [NOTE_TIMED_OUT] = "timed out ",     [NOTE_LATE_ANSWER] = "late answer ",
    [NOTE_REFUSED] = "refused request ",
};

static void put_event(struct trace_writer *w, size_t i)
{
    const struct ring_event *e = &w->event[i].event;
    char text[RING_TEXT + 1];

    if (e->kind < RING_INSTANT)
        put_ended(w, &w->event[i]);
    if (e->kind < RING_INSTANT || e->kind >= RING_INSTANT + (int)NOTES)
        return;
    put_head(w, "i", "event", instant[e->kind - RING_INSTANT], ring_text(e, text), e->thread,
             e->time_ns);
    json_text(&w->json, "s", "p");
    put_args(&w->json, e);
    json_end(&w->json, '{');
}

enum { NAMED_THREADS = 256 };

static void put_name(struct trace_writer *w, const char *what, uint32_t thread, const char *name)
{
    put_head(w, "M", "", "", what, thread, 0);
    json_begin(&w->json, "args", '{');
    json_text(&w->json, "name", name);
    json_end(&w->json, '{');
    json_end(&w->json, '{');
}

/* The rows have the names of their threads. */
static void put_names(struct trace_writer *w)
{
    const struct recorder *first = recorders_held();
    uint32_t named[NAMED_THREADS];
    size_t n = 0, k;

    put_name(w, "process_name", 0, first ? first->worker->self.name : "tenrec");
    for (size_t i = 0; i < w->n && n < NAMED_THREADS; i++) {
        struct stack s = { .thread = w->event[i].event.thread };
        for (k = 0; k < n && named[k] != s.thread; k++)
            ;
        if (k < n)
            continue;
        named[n++] = s.thread;
        stacks_look(&s, 1);
        put_name(w, "thread_name", s.thread, *s.thread_name ? s.thread_name : "ended");
    }
}

static void trace_put_all(struct trace_writer *w, size_t lost)
{
    struct json *j = &w->json;

    json_begin(j, NULL, '{');
    json_text(j, "displayTimeUnit", "ns");
    json_begin(j, "otherData", '{');
    json_textf(j, "writer", "tenrec %s", tenrec_version_text());
    json_int(j, "clock_ns", (int64_t)w->dump->now_ns);
    json_int(j, "dropped", (int64_t)lost);
    json_end(j, '{');
    json_begin(j, "traceEvents", '[');
    put_names(w);
    for (size_t i = 0; i < w->n; i++)
        put_event(w, i);
    put_all_present(w);
    json_end(j, '[');
    json_end(j, '{');
    fputc('\n', j->to);
}

bool dump_trace(struct dump *d)
{
    struct ring_read *event = memory_new(RING_SIZE, sizeof *event);
    struct trace_writer w = { .dump = d, .event = event };
    size_t lost;
    bool well;

    w.json.to = event ? open_memstream(&d->trace, &d->trace_len) : NULL;
    if (w.json.to) {
        d->n_events = w.n = ring_read(event, &lost);
        trace_put_all(&w, lost);
    }
    well = w.json.to && !ferror(w.json.to);
    if (w.json.to && fclose(w.json.to) != 0)
        well = false;
    free(event);
    return well;
}
