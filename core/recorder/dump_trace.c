/* SPDX-License-Identifier: Apache-2.0 */
/* dump_trace.c - the events of the ring as a Chrome trace, for ui.perfetto.dev.
 *
 * This process is a process of the trace. A handler is a slice in the row of its thread, a call of
 * ours an async slice, since those of one thread overlap; all else are instants. What has not ended
 * lasts until the dump, and says so. The text is written by hand, as one by jansson would be built
 * in memory first, event by event. */
#include "recorder/dump.h"

#include "base/memory.h"
#include "base/utf8.h"
#include "recorder/ring.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/version.h>
#include <unistd.h>

struct trace_writer {
    FILE *file;
    const struct dump *dump;
    const struct ring_read *event;
    const uint32_t *ended_by; /* for each event: index + 1 of its end; 0: none */
    size_t n;
    bool any;
};

/* A string with its quotes. */
static void put_string(FILE *file, const char *text)
{
    char clean[256];

    utf8_clean(text, strlen(text), clean, sizeof clean);
    fputc('"', file);
    for (const char *p = clean; *p; p++) {
        if (*p == '"' || *p == '\\')
            fputc('\\', file);
        if ((unsigned char)*p < 0x20)
            fprintf(file, "\\u%04x", (unsigned)*p);
        else
            fputc(*p, file);
    }
    fputc('"', file);
}

/* The start of an entry of the trace, up to its "ts". */
static void put_head(struct trace_writer *w, const char *phase, const char *category,
                     const char *prefix, const char *name, uint32_t thread, uint64_t time_ns)
{
    char whole[300];

    snprintf(whole, sizeof whole, "%s%s", prefix, name);
    fprintf(w->file, "%s\n{\"ph\":\"%s\",\"cat\":\"%s\",\"pid\":%d,\"tid\":%" PRIu32,
            w->any ? "," : "", phase, category, (int)getpid(), thread);
    fprintf(w->file, ",\"ts\":%" PRIu64 ".%03u,\"name\":", time_ns / 1000,
            (unsigned)(time_ns % 1000));
    put_string(w->file, whole);
    w->any = true;
}

static void put_micros(FILE *file, const char *key, uint64_t ns)
{
    fprintf(file, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
}

static struct tenrec_worker *worker_of(uint16_t start)
{
    struct recorder *r = recorders_held();

    while (r && (uint16_t)r->worker->start != start)
        r = r->next;
    return r ? r->worker : NULL;
}

/* The names of the worker and the peer, where the worker still runs. */
static void put_args(struct trace_writer *w, uint16_t start, tenrec_peer peer, int64_t id,
                     tenrec_status status, uint64_t unfinished_ns)
{
    const struct tenrec_worker *worker = worker_of(start);
    const char *name = worker && peer >= 0 ? peers_name(&worker->peers, peer) : "";

    fprintf(w->file, ",\"args\":{\"worker\":");
    put_string(w->file, worker ? worker->self.name : "");
    fprintf(w->file, ",\"peer\":");
    put_string(w->file, name);
    fprintf(w->file, ",\"peer_id\":%d,\"call\":%" PRId64, (int)peer, id);
    if (unfinished_ns)
        put_micros(w->file, "unfinished_us", unfinished_ns);
    else
        fprintf(w->file, ",\"status\":\"%s\"", tenrec_status_name(status));
    fprintf(w->file, "}}");
}

/* ---- calls ---------------------------------------------------------------------- */

struct span_times {
    uint64_t begin_ns, end_ns;
    uint32_t thread;
    bool ended;
};

static uint64_t age_of(const struct span_times *t)
{
    return t->ended ? 0 : t->end_ns > t->begin_ns ? t->end_ns - t->begin_ns : 1;
}

/* `number` makes the async slice unique in the file. */
static void put_async(struct trace_writer *w, const char *category, const char *name,
                      const struct span_times *t, uint64_t number)
{
    put_head(w, "b", category, "", name, t->thread, t->begin_ns);
    fprintf(w->file, ",\"id\":\"%" PRIu64 "\"", number);
}

static void put_async_end(struct trace_writer *w, const char *category, const char *name,
                          const struct span_times *t, uint64_t number)
{
    put_head(w, "e", category, "", name, t->thread, t->end_ns);
    fprintf(w->file, ",\"id\":\"%" PRIu64 "\"}", number);
}

static void put_span(struct trace_writer *w, size_t i)
{
    const struct ring_event *e = &w->event[i].event;
    const struct ring_read *end = w->ended_by[i] ? &w->event[w->ended_by[i] - 1] : NULL;
    const bool serves = e->kind == RING_SERVE_BEGIN;
    const char *category = serves ? "serve" : "call";
    const struct span_times t = { e->time_ns, end ? end->event.time_ns : w->dump->now_ns, e->thread,
                                  end != NULL };
    char name[RING_TEXT + 1];

    ring_text(e, name);
    if (serves && (!end || end->event.thread == e->thread)) {
        put_head(w, "X", category, "", name, t.thread, t.begin_ns);
        put_micros(w->file, "dur", t.end_ns > t.begin_ns ? t.end_ns - t.begin_ns : 1);
    } else {
        put_async(w, category, name, &t, w->event[i].number);
    }
    put_args(w, e->worker, e->peer, end ? end->event.id : e->id,
             end ? (tenrec_status)end->event.status : TENREC_OK, age_of(&t));
    if (!serves || (end && end->event.thread != e->thread))
        put_async_end(w, category, name, &t, w->event[i].number);
}

/* What runs or waits, and began while calls were not recorded. */
static void put_present(struct trace_writer *w)
{
    const struct dump *d = w->dump;

    for (size_t i = 0; i < d->n_handlers; i++) {
        const struct dump_handler *h = &d->handler[i];
        if (h->event || h->state != DUMP_RUNS) /* else its thread may run others */
            continue;
        put_head(w, "X", "serve", "", h->function, h->stack.thread, h->begun_ns);
        put_micros(w->file, "dur", d->now_ns > h->begun_ns ? d->now_ns - h->begun_ns : 1);
        fprintf(w->file, ",\"args\":{\"unfinished\":true,\"call\":%" PRId64 ",\"worker\":", h->id);
        put_string(w->file, h->worker);
        fprintf(w->file, ",\"peer\":");
        put_string(w->file, h->caller);
        fprintf(w->file, "}}");
    }
    for (size_t i = 0; i < d->n_waits; i++) {
        const struct dump_wait *c = &d->wait[i];
        const struct span_times t = { c->begun_ns, d->now_ns, 0, false };
        const uint64_t number = UINT64_C(1) << 62 | i; /* no event has such a number */
        if (c->event || !c->begun_ns)
            continue;
        put_async(w, "call", c->function, &t, number);
        fprintf(w->file, ",\"args\":{\"unfinished\":true,\"call\":%" PRId64 ",\"worker\":", c->id);
        put_string(w->file, c->worker);
        fprintf(w->file, ",\"peer\":");
        put_string(w->file, c->callee);
        fprintf(w->file, "}}");
        put_async_end(w, "call", c->function, &t, number);
    }
}

/* ---- all -------------------------------------------------------------------------- */

static const char *const instant[WATCH_EVENTS] = {
    [WATCH_STARTED] = "started ",         [WATCH_STOPPED] = "stopped ",
    [WATCH_PEER_LOST] = "lost worker ",   [WATCH_CALLER_LOST] = "lost caller ",
    [WATCH_JOINED] = "joined ",           [WATCH_LEFT] = "left ",
    [WATCH_TIMED_OUT] = "timed out ",     [WATCH_LATE_ANSWER] = "late answer ",
    [WATCH_REFUSED] = "refused request ",
};

static void put_event(struct trace_writer *w, size_t i)
{
    const struct ring_event *e = &w->event[i].event;
    char text[RING_TEXT + 1];

    if (e->kind == RING_CALL_BEGIN || e->kind == RING_SERVE_BEGIN)
        put_span(w, i);
    if (e->kind < RING_INSTANT || e->kind >= RING_INSTANT + (int)WATCH_EVENTS)
        return;
    put_head(w, "i", "event", instant[e->kind - RING_INSTANT], ring_text(e, text), e->thread,
             e->time_ns);
    fprintf(w->file, ",\"s\":\"p\"");
    put_args(w, e->worker, e->peer, e->id, (tenrec_status)e->status, 0);
}

enum { NAMED_THREADS = 256 };

static void put_name(struct trace_writer *w, const char *what, uint32_t thread, const char *name)
{
    put_head(w, "M", "", "", what, thread, 0);
    fprintf(w->file, ",\"args\":{\"name\":");
    put_string(w->file, name);
    fprintf(w->file, "}}");
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

/* Finds the end of each event that has one. */
static void trace_pair(const struct ring_read *event, size_t n, uint32_t *ended_by)
{
    uint32_t place[RING_SIZE] = { 0 }; /* index + 1, by the lower bits of the number */

    for (size_t i = 0; i < n; i++)
        place[event[i].number % RING_SIZE] = (uint32_t)i + 1;
    for (size_t i = 0; i < n; i++) {
        const struct ring_event *e = &event[i].event;
        const bool ends = e->kind == RING_CALL_END || e->kind == RING_SERVE_END;
        const uint32_t at = ends ? place[e->begin % RING_SIZE] : 0;
        if (at && (uint32_t)event[at - 1].number == e->begin)
            ended_by[at - 1] = (uint32_t)i + 1;
    }
}

static void trace_put_all(struct trace_writer *w, size_t lost)
{
    fprintf(
        w->file,
        "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"writer\":\"tenrec %s\",\"clock_ns\":%" PRIu64
        ",\"dropped\":%zu},\"traceEvents\":[",
        tenrec_version_text(), w->dump->now_ns, lost);
    put_names(w);
    for (size_t i = 0; i < w->n; i++)
        put_event(w, i);
    put_present(w);
    fprintf(w->file, "\n]}\n");
}

bool dump_trace(struct dump *d)
{
    struct ring_read *event = memory_new(RING_SIZE, sizeof *event);
    uint32_t *ended_by = memory_new(RING_SIZE, sizeof *ended_by);
    struct trace_writer w = { .dump = d, .event = event, .ended_by = ended_by };
    size_t lost;
    bool well;

    w.file = event && ended_by ? open_memstream(&d->trace, &d->trace_len) : NULL;
    if (w.file) {
        d->n_events = w.n = ring_read(event, &lost);
        trace_pair(event, w.n, ended_by);
        trace_put_all(&w, lost);
    }
    well = w.file && !ferror(w.file);
    if (w.file && fclose(w.file) != 0)
        well = false;
    free(event);
    free(ended_by);
    return well;
}
