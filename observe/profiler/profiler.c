/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/profiler/sessions.h"

#include "core/base/clock.h"
#include "core/base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { EVENTS_DEFAULT = 100000 };

static tenrec_status check_options(const struct tenrec_worker *w,
                                   const struct tenrec_profiler_options *o, tenrec_error *err)
{
    if (o->size < sizeof *o)
        return tenrec_fail(err, TENREC_EINVAL,
                           "profiler options: size is %u, expected %zu (set it to sizeof)", o->size,
                           sizeof *o);
    if (o->flags & ~(uint32_t)TENREC_PROFILE_LOCAL)
        return tenrec_fail(err, TENREC_EINVAL, "profiler options: unknown flags 0x%x", o->flags);
    if (o->scope > TENREC_PROFILE_SERVER)
        return tenrec_fail(err, TENREC_EINVAL, "profiler options: unknown scope %u", o->scope);
    if (!w && o->scope != TENREC_PROFILE_SERVER)
        return tenrec_fail(err, TENREC_EINVAL,
                           "a session needs a worker, unless its scope is TENREC_PROFILE_SERVER");
    return TENREC_OK;
}

tenrec_status tenrec_profiler_start(struct tenrec_worker *w,
                                    const struct tenrec_profiler_options *options,
                                    struct tenrec_profiler **ret, tenrec_error *err)
{
    static const struct tenrec_profiler_options defaults = { .size = sizeof defaults };
    const struct tenrec_profiler_options *o = options ? options : &defaults;
    tenrec_status st = check_options(w, o, err);
    struct tenrec_profiler *p;

    *ret = NULL;
    if (st != TENREC_OK)
        return st;
    p = memory_new(1, sizeof *p);
    if (p)
        p->events = events_new(o->max_events > 0 ? (size_t)o->max_events : EVENTS_DEFAULT);
    if (!p || !p->events) {
        free(p);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a session");
    }
    p->w = w;
    p->scope = o->scope;
    p->events->remote = !(o->flags & TENREC_PROFILE_LOCAL);
    p->start_ns = clock_now_ns();
    p->running = true;
    if (p->scope == TENREC_PROFILE_THREAD) {
        p->events->outer = events_share(thread_events());
        p->events->served = p->events->outer && p->events->outer->served;
        p->before = thread_events_enter(p->events);
        recorders_add();
    } else {
        sessions_enter(p);
    }
    *ret = p;
    return TENREC_OK;
}

/* By start; of events with the same start the outer is first. */
static int by_start(const void *left, const void *right)
{
    const struct tenrec_event *a = *(struct tenrec_event *const *)left;
    const struct tenrec_event *b = *(struct tenrec_event *const *)right;

    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    if (a->duration_ns != b->duration_ns)
        return a->duration_ns > b->duration_ns ? -1 : 1;
    return 0;
}

/* Closes the list, and makes the times of its events relative to the start. */
static void profiler_finish(struct tenrec_profiler *p)
{
    events_close(p->events);
    for (size_t i = 0; i < p->events->n; i++) {
        struct tenrec_event *e = p->events->event[i];
        e->start_ns = e->start_ns > p->start_ns ? e->start_ns - p->start_ns : 0;
    }
    if (p->events->n > 0)
        qsort(p->events->event, p->events->n, sizeof(struct tenrec_event *), by_start);
    p->running = false;
}

tenrec_status tenrec_profiler_stop(struct tenrec_profiler *p, tenrec_error *err)
{
    if (!p->running)
        return tenrec_fail(err, TENREC_EINVAL, "the session is stopped already");
    if (p->scope == TENREC_PROFILE_THREAD) {
        if (!thread_events_is(p->events))
            return tenrec_fail(err, TENREC_EINVAL,
                               "the session is not the innermost of this thread");
        thread_events_leave(p->before);
        recorders_remove();
    } else {
        sessions_leave(p);
    }
    profiler_finish(p);
    return TENREC_OK;
}

void tenrec_profiler_drop(struct tenrec_profiler *p)
{
    if (!p)
        return;
    /* The thread of the session is in an inner session, or is not this one: it finds the list
     * closed. */
    if (p->running && tenrec_profiler_stop(p, NULL) != TENREC_OK) {
        recorders_remove();
        events_close(p->events);
        events_drop(p->before.events);
    }
    events_drop(p->events);
    free(p);
}

size_t tenrec_profiler_count(const struct tenrec_profiler *p)
{
    return p->running ? 0 : p->events->n;
}

const struct tenrec_event *tenrec_profiler_event(const struct tenrec_profiler *p, size_t i)
{
    return i < tenrec_profiler_count(p) ? p->events->event[i] : NULL;
}

uint64_t tenrec_profiler_dropped(const struct tenrec_profiler *p)
{
    return p->running ? 0 : p->events->dropped;
}

const struct tenrec_event *tenrec_profiler_get_function_event(const struct tenrec_profiler *p,
                                                              const char *part)
{
    for (size_t i = 0; i < tenrec_profiler_count(p); i++)
        if (strstr(p->events->event[i]->name, part))
            return p->events->event[i];
    return NULL;
}

tenrec_status tenrec_profiler_write(const struct tenrec_profiler *p, const char *path,
                                    tenrec_error *err)
{
    if (p->running)
        return tenrec_fail(err, TENREC_EINVAL, "the session still records: stop it first");
    if (!path || !*path)
        return tenrec_fail(err, TENREC_EINVAL, "profiler_write: no path is given");
    return trace_json_write(p, path, false, err);
}
