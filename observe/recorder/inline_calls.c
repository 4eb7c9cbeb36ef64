/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/recorder/recorder.h"

#include "core/base/forks.h"
#include "core/base/memory.h"
#include "core/base/threads.h"
#include "rpc/call/calls.h"
#include "rpc/future/worker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Written by its thread only; a reader that finds the same number before and after has read the
 * fields of one call. */
struct inline_slot {
    struct inline_slot *next; /* guarded by lock */
    _Atomic uint64_t number;  /* of the handler that runs; 0: none */
    _Atomic uint32_t worker;
    const struct function *_Atomic function;
    _Atomic tenrec_peer from;
    _Atomic int64_t id;
    _Atomic uint64_t began_ns;
    uint32_t thread;
    uint64_t begun;    /* handlers of the thread so far */
    uint64_t reported; /* a number; guarded by lock */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct inline_slot *slots;

static _Thread_local struct {
    struct thread_end end;
    struct inline_slot *slot; /* owns */
} mine STATIC_TLS;

static void inline_slot_drop(void)
{
    struct inline_slot *p = mine.slot, **at = &slots;

    mine.slot = NULL;
    pthread_mutex_lock(&lock);
    while (*at && *at != p)
        at = &(*at)->next;
    if (*at)
        *at = p->next;
    pthread_mutex_unlock(&lock);
    free(p);
}

/* In the child of a fork only this thread is left. */
static void inline_calls_forked(void)
{
    pthread_mutex_init(&lock, NULL);
    slots = NULL;
    mine.slot = NULL;
}

static struct fork_hook fork_hook = { .child = inline_calls_forked };

static struct inline_slot *inline_slot_new(void)
{
    struct inline_slot *p;

    forks_follow(&fork_hook);
    if (!thread_end_follow(&mine.end, inline_slot_drop) || !(p = memory_new(1, sizeof *p)))
        return NULL;
    p->thread = thread_id();
    threads_unblock_stack();
    pthread_mutex_lock(&lock);
    p->next = slots;
    slots = p;
    pthread_mutex_unlock(&lock);
    return mine.slot = p;
}

void inline_call_begin(const struct tenrec_call *c)
{
    struct inline_slot *p = mine.slot ? mine.slot : inline_slot_new();

    if (!p)
        return;
    atomic_store_explicit(&p->number, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&p->worker, c->worker->start, memory_order_relaxed);
    atomic_store_explicit(&p->function, c->function, memory_order_relaxed);
    atomic_store_explicit(&p->from, c->from, memory_order_relaxed);
    atomic_store_explicit(&p->id, c->key.id, memory_order_relaxed);
    atomic_store_explicit(&p->began_ns, c->began_ns, memory_order_relaxed);
    atomic_store_explicit(&p->number, ++p->begun, memory_order_release);
}

void inline_call_end(void)
{
    if (mine.slot)
        atomic_store_explicit(&mine.slot->number, 0, memory_order_relaxed);
}

/* Returns the number of the call; 0: none runs, or they change too fast. */
static uint64_t inline_slot_read(struct inline_slot *p, struct inline_call *ret)
{
    const uint64_t number = atomic_load_explicit(&p->number, memory_order_acquire);

    ret->worker = atomic_load_explicit(&p->worker, memory_order_relaxed);
    ret->function = atomic_load_explicit(&p->function, memory_order_relaxed);
    ret->from = atomic_load_explicit(&p->from, memory_order_relaxed);
    ret->id = atomic_load_explicit(&p->id, memory_order_relaxed);
    ret->began_ns = atomic_load_explicit(&p->began_ns, memory_order_relaxed);
    ret->thread = p->thread;
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&p->number, memory_order_relaxed) == number ? number : 0;
}

void inline_calls_each(inline_calls_fn *fn, void *arg)
{
    struct inline_call call;

    pthread_mutex_lock(&lock);
    for (struct inline_slot *p = slots; p; p = p->next) {
        const uint64_t number = inline_slot_read(p, &call);
        bool reported = p->reported == number;

        if (!number)
            continue;
        fn(arg, &call, &reported);
        p->reported = reported ? number : 0;
    }
    pthread_mutex_unlock(&lock);
}
