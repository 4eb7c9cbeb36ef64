/* SPDX-License-Identifier: Apache-2.0 */
/* dump_trace.c - the events of the ring as a Chrome trace, for ui.perfetto.dev.
 *
 * This process is a process of the trace. A handler is a slice in the row of its thread, a call of
 * ours an async slice, since those of one thread overlap; so is a handler that answers later. All
 * else are instants. What has not ended is not in the ring, but in the tables of its worker; it
 * lasts until the dump, and says so. The text is written by hand, as one by jansson would be built
 * in memory first, event by event. */
#include "observe/recorder/dump.h"

#include "core/base/memory.h"
#include "core/base/utf8.h"
#include "observe/recorder/ring.h"

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
static void put_args(struct trace_writer *w, const struct ring_event *e)
{
    const struct tenrec_worker *worker = worker_of(e->worker);
    const char *name = worker && e->peer >= 0 ? peers_name(&worker->peers, e->peer) : "";

    fprintf(w->file, ",\"args\":{\"worker\":");
    put_string(w->file, worker ? worker->self.name : "");
    fprintf(w->file, ",\"peer\":");
    put_string(w->file, name);
    fprintf(w->file, ",\"peer_id\":%d,\"call\":%" PRId64 ",\"status\":\"%s\"}}", (int)e->peer,
            e->id, tenrec_status_name((tenrec_status)e->status));
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
        fprintf(w->file, ",\"id\":\"%" PRIu64 "\"", s->number);
    else
        put_micros(w->file, "dur", s->ns ? s->ns : 1);
}

static void put_slice_end(struct trace_writer *w, const struct slice *s)
{
    if (!s->async)
        return;
    put_head(w, "e", s->category, "", s->name, s->thread, s->begin_ns + s->ns);
    fprintf(w->file, ",\"id\":\"%" PRIu64 "\"}", s->number);
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
    put_args(w, e);
    put_slice_end(w, &s);
}

/* What runs or waits. */
static void put_present(struct trace_writer *w, struct slice *s, const char *worker,
                        const char *peer, int64_t id)
{
    s->ns = w->dump->now_ns > s->begin_ns ? w->dump->now_ns - s->begin_ns : 1;
    put_slice(w, s);
    fprintf(w->file, ",\"args\":{\"worker\":");
    put_string(w->file, worker);
    fprintf(w->file, ",\"peer\":");
    put_string(w->file, peer);
    fprintf(w->file, ",\"call\":%" PRId64, id);
    put_micros(w->file, "unfinished_us", s->ns);
    fprintf(w->file, "}}");
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

    if (e->kind < RING_INSTANT)
        put_ended(w, &w->event[i]);
    if (e->kind < RING_INSTANT || e->kind >= RING_INSTANT + (int)WATCH_EVENTS)
        return;
    put_head(w, "i", "event", instant[e->kind - RING_INSTANT], ring_text(e, text), e->thread,
             e->time_ns);
    fprintf(w->file, ",\"s\":\"p\"");
    put_args(w, e);
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
    put_all_present(w);
    fprintf(w->file, "\n]}\n");
}

bool dump_trace(struct dump *d)
{
    struct ring_read *event = memory_new(RING_SIZE, sizeof *event);
    struct trace_writer w = { .dump = d, .event = event };
    size_t lost;
    bool well;

    w.file = event ? open_memstream(&d->trace, &d->trace_len) : NULL;
    if (w.file) {
        d->n_events = w.n = ring_read(event, &lost);
        trace_put_all(&w, lost);
    }
    well = w.file && !ferror(w.file);
    if (w.file && fclose(w.file) != 0)
        well = false;
    free(event);
    return well;
}
