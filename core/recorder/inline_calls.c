/* SPDX-License-Identifier: Apache-2.0 */
#include "recorder/inline_calls.h"

#include "base/memory.h"
#include "runtime/thread_end.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct inline_call {
    struct inline_call *next; /* guarded by lock */
    _Atomic uint64_t number;  /* of the handler that runs; 0: none */
    struct ring_slot slot;
    uint64_t begun; /* handlers of the thread so far */
    uint64_t told;  /* a number; guarded by lock */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct inline_call *calls;

static _Thread_local struct {
    struct thread_end end;
    struct inline_call *call; /* owns */
} mine STATIC_TLS;

static void inline_call_drop(void)
{
    struct inline_call *c = mine.call, **at = &calls;

    mine.call = NULL;
    pthread_mutex_lock(&lock);
    while (*at && *at != c)
        at = &(*at)->next;
    if (*at)
        *at = c->next;
    pthread_mutex_unlock(&lock);
    free(c);
}

/* In the child of a fork only this thread is left. */
static void inline_calls_forked(void)
{
    pthread_mutex_init(&lock, NULL);
    calls = NULL;
    mine.call = NULL;
}

static void inline_calls_watch_forks(void)
{
    pthread_atfork(NULL, NULL, inline_calls_forked);
}

static struct inline_call *inline_call_new(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct inline_call *c;

    pthread_once(&once, inline_calls_watch_forks);
    if (!thread_end_follow(&mine.end, inline_call_drop) || !(c = memory_new(1, sizeof *c)))
        return NULL;
    pthread_mutex_lock(&lock);
    c->next = calls;
    calls = c;
    pthread_mutex_unlock(&lock);
    return mine.call = c;
}

void inline_call_begin(const struct ring_event *e)
{
    struct inline_call *c = mine.call ? mine.call : inline_call_new();

    if (!c)
        return;
    ring_slot_write(&c->slot, ++c->begun, e);
    atomic_store_explicit(&c->number, c->begun, memory_order_relaxed);
}

void inline_call_end(void)
{
    if (mine.call)
        atomic_store_explicit(&mine.call->number, 0, memory_order_relaxed);
}

void inline_calls_each(inline_calls_fn *fn, void *arg)
{
    struct ring_read call;

    pthread_mutex_lock(&lock);
    for (struct inline_call *c = calls; c; c = c->next) {
        call.number = atomic_load_explicit(&c->number, memory_order_relaxed);
        if (call.number && ring_slot_read(&c->slot, call.number, &call.event)) {
            bool told = c->told == call.number;
            fn(arg, &call, &told);
            if (told)
                c->told = call.number;
        }
    }
    pthread_mutex_unlock(&lock);
}
