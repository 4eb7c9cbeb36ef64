/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/metrics/series.h"

#include "core/base/forks.h"
#include "core/base/memory.h"
#include "core/base/threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { CHUNK = 16 }; /* series whose counts are allocated together */

/* Written by its thread only, so that a plain addition is enough. */
struct counts {
    _Atomic uint64_t sum_ns;
    _Atomic uint64_t bucket[DURATION_BUCKETS];
};

/* The counts of a thread, or of all threads that have ended. */
struct durations_table {
    struct durations_table *next; /* guarded by lock */
    struct counts *_Atomic chunk[SERIES_MAX / CHUNK];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list and `ended` */
static struct durations_table *tables;
static struct durations_table ended;

static _Thread_local struct {
    struct thread_end end;
    struct durations_table *table; /* owns */
} mine STATIC_TLS;

static struct counts *table_counts(struct durations_table *t, uint32_t series, bool make)
{
    struct counts *_Atomic *at = &t->chunk[(series - 1) / CHUNK];
    struct counts *chunk = atomic_load_explicit(at, memory_order_acquire);

    if (!chunk && make && (chunk = memory_new(CHUNK, sizeof *chunk)))
        atomic_store_explicit(at, chunk, memory_order_release);
    return chunk ? &chunk[(series - 1) % CHUNK] : NULL;
}

static void counter_add(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/* ---- threads that begin and end -------------------------------------------- */

/* Adds the counts to those of ended threads. Without memory for these they are lost. */
static void table_fold(struct durations_table *t, uint32_t series)
{
    struct counts *from = table_counts(t, series, false), *to;

    if (!from || !(to = table_counts(&ended, series, true)))
        return;
    counter_add(&to->sum_ns, atomic_load_explicit(&from->sum_ns, memory_order_relaxed));
    for (int i = 0; i < DURATION_BUCKETS; i++)
        counter_add(&to->bucket[i], atomic_load_explicit(&from->bucket[i], memory_order_relaxed));
}

static void table_end(void)
{
    struct durations_table *t = mine.table, **at = &tables;

    mine.table = NULL;
    pthread_mutex_lock(&lock);
    while (*at && *at != t)
        at = &(*at)->next;
    if (*at)
        *at = t->next;
    for (uint32_t i = 1; i <= SERIES_MAX; i++)
        table_fold(t, i);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < SERIES_MAX / CHUNK; i++)
        free(t->chunk[i]);
    free(t);
}

/* In the child of a fork only this thread is left, and nothing has been measured. */
static void durations_forked(void)
{
    pthread_mutex_init(&lock, NULL);
    tables = NULL;
    mine.table = NULL;
    for (int i = 0; i < SERIES_MAX / CHUNK; i++)
        ended.chunk[i] = NULL;
}

static struct fork_hook fork_hook = { .child = durations_forked };

static struct durations_table *table_begin(void)
{
    struct durations_table *t;

    forks_follow(&fork_hook);
    if (!thread_end_follow(&mine.end, table_end) || !(t = memory_new(1, sizeof *t)))
        return NULL;
    pthread_mutex_lock(&lock);
    t->next = tables;
    tables = t;
    pthread_mutex_unlock(&lock);
    return mine.table = t;
}

/* ---- counting and reading -------------------------------------------------- */

static unsigned bucket_of(uint64_t ns)
{
    const uint64_t us = (ns + 999) / 1000;
    const unsigned i = us <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(us - 1);

    return i < DURATION_BUCKETS ? i : DURATION_BUCKETS - 1;
}

bool durations_add(uint32_t series, uint64_t ns)
{
    struct durations_table *t = mine.table ? mine.table : table_begin();
    struct counts *c = t ? table_counts(t, series, true) : NULL;

    if (!c)
        return false;
    counter_add(&c->sum_ns, ns);
    counter_add(&c->bucket[bucket_of(ns)], 1);
    return true;
}

static void sum_add(struct durations_table *t, uint32_t series, struct durations *ret)
{
    struct counts *c = table_counts(t, series, false);

    if (!c)
        return;
    ret->sum_ns += atomic_load_explicit(&c->sum_ns, memory_order_relaxed);
    for (int i = 0; i < DURATION_BUCKETS; i++)
        ret->bucket[i] += atomic_load_explicit(&c->bucket[i], memory_order_relaxed);
}

void durations_sum(uint32_t series, struct durations *ret)
{
    *ret = (struct durations){ 0 };
    if (series < 1 || series > SERIES_MAX)
        return;
    pthread_mutex_lock(&lock);
    sum_add(&ended, series, ret);
    for (struct durations_table *t = tables; t; t = t->next)
        sum_add(t, series, ret);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < DURATION_BUCKETS; i++)
        ret->n += ret->bucket[i];
}
