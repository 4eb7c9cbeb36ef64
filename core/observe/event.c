/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/event.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "peer/worker.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Cached per thread: each is a system call, and a row of a trace has one name. */
static _Thread_local struct {
    uint64_t id;
    char name[16];
} thread;

static const char *put_text(char *to, const char *text, size_t n)
{
    memcpy(to, text, n);
    to[n] = '\0';
    return to;
}

struct tenrec_event *event_copy(const struct tenrec_event *from, const char *prefix)
{
    const size_t prefix_len = strlen(prefix), name_len = strlen(from->name);
    const size_t worker_len = strlen(from->worker_name), thread_len = strlen(from->thread_name);
    struct tenrec_event *e;
    char *at;

    if (prefix_len + name_len > EVENT_NAME_MAX)
        return NULL;
    e = memory_new(1, sizeof *e + prefix_len + name_len + worker_len + thread_len + 3);
    if (!e)
        return NULL;
    *e = *from;
    at = (char *)(e + 1);
    put_text(at, prefix, prefix_len);
    put_text(at + prefix_len, from->name, name_len);
    e->name = at;
    at += prefix_len + name_len + 1;
    e->worker_name = put_text(at, from->worker_name, worker_len);
    e->thread_name = put_text(at + worker_len + 1, from->thread_name, thread_len);
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
