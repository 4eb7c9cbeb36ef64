/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/profiler/events.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "rpc/future/worker.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Cached per thread: each is a system call, and a row of a trace has one name. */
static _Thread_local struct {
    uint64_t id;
    char name[16];
} thread;

struct tenrec_event *event_copy(const struct tenrec_event *from, const char *prefix)
{
    const size_t name_len = strlen(prefix) + strlen(from->name);
    struct tenrec_event *e;
    char *at;

    if (name_len > EVENT_NAME_MAX)
        return NULL;
    e = memory_new(1, sizeof *e + name_len + strlen(from->worker_name) + strlen(from->thread_name) +
                          3);
    if (!e)
        return NULL;
    *e = *from;
    e->name = at = (char *)(e + 1);
    e->worker_name = at = stpcpy(stpcpy(at, prefix), from->name) + 1;
    e->thread_name = at = stpcpy(at, from->worker_name) + 1;
    stpcpy(at, from->thread_name);
    return e;
}

struct tenrec_event *event_new(const struct tenrec_worker *w, uint32_t kind, const char *name)
{
    char clean[EVENT_NAME_MAX + 2];
    struct tenrec_event e = { .name = name,
                              .worker_name = w->self.name,
                              .thread_name = thread.name,
                              .worker_id = w->self.id,
                              .caller_id = TENREC_ANONYMOUS,
                              .call_id = -1,
                              .kind = kind };

    if (thread.id == 0) {
        thread.id = (uint64_t)syscall(SYS_gettid);
        if (pthread_getname_np(pthread_self(), thread.name, sizeof thread.name) != 0 ||
            utf8_span(thread.name, strlen(thread.name)) != strlen(thread.name))
            thread.name[0] = '\0';
    }
    e.thread = thread.id;
    /* The name goes into texts on the wire and in the trace. */
    if (utf8_span(name, strlen(name)) != strlen(name)) {
        utf8_clean(name, strlen(name), clean, sizeof clean);
        e.name = clean;
    }
    e.start_ns = clock_now_ns();
    return event_copy(&e, "");
}

void event_forget_thread(void)
{
    thread.id = 0;
}

void event_drop(struct tenrec_event *e)
{
    free(e);
}
