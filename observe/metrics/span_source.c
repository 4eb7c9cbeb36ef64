/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/metrics/observer.h"

#include "core/base/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct span_source {
    struct trace_sink sink; /* first */
    /* Held while a span is passed on, which does not wait: none comes after a stop. */
    pthread_mutex_t lock;
    struct observer *observer; /* shares; guarded by lock; NULL: spans are dropped */
    char *service, *worker;    /* own */
    char host[256];
};

static struct span_source *span_source_of(struct trace_sink *sink)
{
    return (struct span_source *)(void *)sink;
}

static void span_source_add(struct trace_sink *sink, struct tenrec_span *s)
{
    struct span_source *source = span_source_of(sink);

    pthread_mutex_lock(&source->lock);
    if (source->observer)
        observer_span(source->observer, s);
    else
        trace_span_done(s, false);
    pthread_mutex_unlock(&source->lock);
}

struct trace_sink *span_source_new(void)
{
    struct span_source *source = memory_new(1, sizeof *source);

    if (!source)
        return NULL;
    pthread_mutex_init(&source->lock, NULL);
    source->sink.add = span_source_add;
    return &source->sink;
}

static void span_source_forget(struct span_source *source)
{
    free(source->service);
    free(source->worker);
    source->service = source->worker = NULL;
}

void span_source_drop(struct trace_sink *sink)
{
    if (!sink)
        return;
    span_source_forget(span_source_of(sink));
    pthread_mutex_destroy(&span_source_of(sink)->lock);
    free(sink);
}

static tenrec_status span_source_name(struct span_source *source, const char *service,
                                      const char *worker, tenrec_error *err)
{
    source->service = memory_text(service);
    source->worker = memory_text(worker);
    if (gethostname(source->host, sizeof source->host - 1) != 0)
        strcpy(source->host, "unknown");
    source->sink.origin = (struct tenrec_origin){
        .service = source->service,
        .worker = source->worker,
        .host = source->host,
        .process = getpid(),
    };
    return source->service && source->worker ? TENREC_OK : memory_fail(err);
}

tenrec_status span_source_start(struct trace_sink *sink, struct observer_choice *choice,
                                const char *address, const char *service, const char *worker,
                                tenrec_error *err)
{
    struct span_source *source = span_source_of(sink);
    struct observer *o = NULL;
    tenrec_status st = span_source_name(source, service, worker, err);

    if (st == TENREC_OK)
        st = observer_open(choice, address, &o, err);
    if (st == TENREC_OK && !observer_takes_spans(o))
        st = tenrec_fail(err, TENREC_EUNSUPPORTED, "observer '%s' takes no spans", choice->name);
    if (st != TENREC_OK) {
        observer_close(o);
        span_source_forget(source);
        return st;
    }
    pthread_mutex_lock(&source->lock);
    source->observer = o;
    pthread_mutex_unlock(&source->lock);
    return TENREC_OK;
}

void span_source_stop(struct trace_sink *sink)
{
    struct span_source *source = span_source_of(sink);
    struct observer *o;

    pthread_mutex_lock(&source->lock);
    o = source->observer;
    source->observer = NULL; /* calls that still end have no spans */
    pthread_mutex_unlock(&source->lock);
    if (!o)
        return;
    observer_leave(o, &sink->origin);
    observer_close(o);
    span_source_forget(source);
}
