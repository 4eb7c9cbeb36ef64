/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/metrics/readings.h"

#include "core/base/memory.h"
#include "observe/metrics/metrics.h"
#include "rpc/future/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/observe.h>

/* The workers that have started. The lock is held while they are read, so that none ends
 * meanwhile; nothing that reads waits for a peer. */
static struct {
    pthread_mutex_t lock;
    struct tenrec_worker **worker;
    size_t n, room;
} started = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void started_forked(void)
{
    pthread_mutex_init(&started.lock, NULL);
    started.n = 0; /* workers belong to the parent */
}

static void started_watch_forks(void)
{
    pthread_atfork(NULL, NULL, started_forked);
}

tenrec_status metrics_enter(struct tenrec_worker *w, tenrec_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct tenrec_worker **grown;

    pthread_once(&once, started_watch_forks);
    pthread_mutex_lock(&started.lock);
    grown = memory_grow(started.worker, started.n, &started.room, sizeof *grown);
    if (grown) {
        started.worker = grown;
        started.worker[started.n++] = w;
    }
    pthread_mutex_unlock(&started.lock);
    return grown ? TENREC_OK : memory_fail(err);
}

void metrics_leave(struct tenrec_worker *w)
{
    pthread_mutex_lock(&started.lock);
    for (size_t i = 0; i < started.n; i++)
        if (started.worker[i] == w) {
            started.worker[i] = started.worker[--started.n];
            break;
        }
    if (started.n == 0) {
        free(started.worker);
        started.worker = NULL;
        started.room = 0;
    }
    pthread_mutex_unlock(&started.lock);
}

/* Texts among the values are left out. */
static void on_pair(void *arg, const char *key, const char *text)
{
    struct readings *r = arg;
    struct reading *grown;
    const char *copy;
    char *end;
    uint64_t value;

    if (*text < '0' || *text > '9')
        return;
    errno = 0;
    value = strtoull(text, &end, 10);
    if (*end || errno)
        return;
    grown = memory_grow(r->v, r->n, &r->room, sizeof *grown);
    copy = arena_text(&r->texts, key);
    if (grown)
        r->v = grown;
    if (grown && copy)
        r->v[r->n++] = (struct reading){ r->worker, copy, value };
    else
        r->failed = true;
}

bool readings_make(struct readings *r)
{
    *r = (struct readings){ .n = 0 };
    pthread_mutex_lock(&started.lock);
    for (size_t i = 0; i < started.n; i++) {
        r->worker = arena_text(&r->texts, started.worker[i]->self.name);
        if (r->worker)
            tenrec_worker_list_debug_info(started.worker[i], on_pair, r);
        else
            r->failed = true;
    }
    pthread_mutex_unlock(&started.lock);
    return !r->failed;
}

void readings_finish(struct readings *r)
{
    arena_finish(&r->texts);
    free(r->v);
}

const struct reading *readings_next(const struct readings *r, const char *key, size_t *at)
{
    for (; *at < r->n; ++*at)
        if (strcmp(r->v[*at].key, key) == 0)
            return &r->v[(*at)++];
    return NULL;
}
