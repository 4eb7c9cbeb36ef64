/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/observer_fixture.h"

#include "core/base/clock.h"
#include "core/config/config.h"
#include "core/plugin/plugin.h"
#include "observe/metrics/observer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenrec/log.h>

enum { END_MS = 1000 /* of the rules */, ORIGINS_MAX = 8 };

struct tenrec_observer observer;
static struct tenrec_observer_host host;

static struct {
    const char *address;
    struct plugin *backend;
    void *options;
    pthread_mutex_t lock; /* guards those below */
    int done;
    struct {
        const struct tenrec_origin *origin;
        int done;
    } of[ORIGINS_MAX];
} fixture = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- its host: that of a worker, but for its log and its spans ---- */

static bool host_log_enabled(const void *self, enum tenrec_log_level level)
{
    (void)self, (void)level;
    return true;
}

TENREC_PRINTF(3, 4)
static void host_log(const void *self, enum tenrec_log_level level, const char *fmt, ...)
{
    char text[500];
    va_list ap;

    (void)self;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (level == TENREC_LOG_ERROR)
        expect_fail("it logs an error: %s", text);
}

static void host_span_done(struct tenrec_observer *self, struct tenrec_span *s, bool sent)
{
    (void)self, (void)sent;
    pthread_mutex_lock(&fixture.lock);
    fixture.done++;
    for (int i = 0; s->origin && i < ORIGINS_MAX; i++)
        if (!fixture.of[i].origin || fixture.of[i].origin == s->origin) {
            fixture.of[i].origin = s->origin;
            fixture.of[i].done++;
            break;
        }
    pthread_mutex_unlock(&fixture.lock);
    free(s);
}

/* ---- the plugin ---- */

void observer_run(const struct conformance_case *c, const struct conformance_setup *setup)
{
    const struct config_layer layer = { .section = SECTION_OBSERVERS,
                                        .name = "it",
                                        .plugin = setup->path };
    tenrec_error err;

    fixture.address = setup->address;
    if (plugin_entry_load(&layer, &fixture.backend, &fixture.options, &err) != TENREC_OK)
        expect_unusable(&err);
    c->run();
}

const char *observer_fixture_path(void)
{
    return plugin_path(fixture.backend);
}

tenrec_status observer_fixture_try(const char *address, tenrec_error *err)
{
    const struct tenrec_observer_init in = { .size = sizeof in,
                                             .address = address,
                                             .options = fixture.options };

    host = observer_host;
    host.log_enabled = host_log_enabled;
    host.log = host_log;
    host.span_done = host_span_done;
    observer = (struct tenrec_observer){ .host = &host };
    *err = (tenrec_error){ 0 };
    return plugin_loaded(fixture.backend)->init_observer(&in, &observer, err);
}

void observer_fixture_open(void)
{
    tenrec_error err;

    expect_ok(observer_fixture_try(fixture.address, &err), &err, "opening");
    expect(observer.ops && TENREC_HAS(observer.ops, close), "it has no operation 'close'");
}

/* Demands that no more than a second has passed. */
static void observer_fixture_was_fast(uint64_t begun_ns, const char *operation)
{
    const unsigned ms = (unsigned)((clock_now_ns() - begun_ns) / 1000000);

    if (ms > expect_slow(END_MS) + END_MS / 4)
        expect_fail("%s takes %u ms, at most %d are allowed", operation, ms, END_MS);
}

void observer_fixture_leave(const struct tenrec_origin *origin)
{
    const uint64_t begun = clock_now_ns();

    if (TENREC_HAS(observer.ops, leave))
        observer.ops->leave(&observer, origin);
    observer_fixture_was_fast(begun, "leave");
}

void observer_fixture_close(void)
{
    const uint64_t begun = clock_now_ns();

    observer.ops->close(&observer);
    observer_fixture_was_fast(begun, "close");
}

/* ---- spans ---- */

void observer_fixture_span(const struct tenrec_origin *origin)
{
    struct tenrec_span *s = calloc(1, sizeof *s);

    expect_here(s);
    *s = (struct tenrec_span){ .origin = origin,
                               .function = "add",
                               .peer = "worker1",
                               .start_ns = clock_now_ns(),
                               .end_ns = clock_now_ns(),
                               .kind = TENREC_SPAN_CLIENT,
                               .trace_id = { 1 },
                               .span_id = { 2 },
                               .flags = 1 };
    observer.ops->span(&observer, s);
}

int observer_fixture_done(void)
{
    int n;

    pthread_mutex_lock(&fixture.lock);
    n = fixture.done;
    pthread_mutex_unlock(&fixture.lock);
    return n;
}

int observer_fixture_done_of(const struct tenrec_origin *origin)
{
    int n = 0;

    pthread_mutex_lock(&fixture.lock);
    for (int i = 0; i < ORIGINS_MAX; i++)
        if (fixture.of[i].origin == origin)
            n = fixture.of[i].done;
    pthread_mutex_unlock(&fixture.lock);
    return n;
}
