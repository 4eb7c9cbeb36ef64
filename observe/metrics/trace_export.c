/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/metrics/trace_export.h"

#include "core/base/memory.h"
#include "observe/metrics/trace_queue.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct trace_sink *trace_export_new(void)
{
    struct trace_export *t = memory_new(1, sizeof *t);

    if (!t)
        return NULL;
    t->sink.add = trace_queue_add;
    return &t->sink;
}

static struct trace_export *export_of(struct trace_sink *sink)
{
    return (struct trace_export *)(void *)sink;
}

static void export_forget(struct trace_export *t)
{
    free(t->service);
    free(t->worker);
    t->service = t->worker = NULL;
}

void trace_export_drop(struct trace_sink *sink)
{
    if (!sink)
        return;
    export_forget(export_of(sink));
    free(sink);
}

tenrec_status trace_export_start(struct trace_sink *sink, struct exporter_choice *choice,
                                 const char *address, const char *service, const char *worker,
                                 tenrec_error *err)
{
    struct trace_export *t = export_of(sink);
    struct exporter *e;
    tenrec_status st;

    t->service = memory_text(service);
    t->worker = memory_text(worker);
    t->process = getpid();
    if (gethostname(t->host, sizeof t->host - 1) != 0)
        strcpy(t->host, "unknown");
    st = t->service && t->worker ? exporter_open(choice, address, &e, err) : memory_fail(err);
    if (st == TENREC_OK)
        st = trace_queue_join(t, e, err);
    if (st != TENREC_OK)
        export_forget(t);
    return st;
}

void trace_export_stop(struct trace_sink *sink)
{
    struct trace_export *t = export_of(sink);

    trace_queue_leave(t);
    export_forget(t);
}
