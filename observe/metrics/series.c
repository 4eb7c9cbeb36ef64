/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/metrics/series.h"

#include "core/base/forks.h"
#include "core/base/hash.h"
#include "core/base/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A series, in one block with its texts, which follow each other in `key`. */
struct entry {
    struct series series;
    UT_hash_handle hh;
    uint32_t number; /* guarded by lock */
    size_t len;
    char key[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *by_key;                        /* guarded by lock */
static uint32_t n;                                  /* likewise */
static struct entry *_Atomic by_number[SERIES_MAX]; /* set once each */
static _Atomic uint64_t dropped;

/* The parent's other threads, of which one may have held the lock, are not in a fork's child. */
static void series_forked(void)
{
    pthread_mutex_init(&lock, NULL);
}

static struct fork_hook fork_hook = { .child = series_forked };

static size_t put_text(char *at, const char **ret, const char *text)
{
    const size_t len = strlen(text) + 1;

    *ret = memcpy(at, text, len);
    return len;
}

static struct entry *entry_new(const struct series *key)
{
    const size_t len = 2 + strlen(key->worker) + strlen(key->method) + strlen(key->peer) + 3;
    struct entry *e = memory_new(1, sizeof *e + len);
    char *at;

    if (!e)
        return NULL;
    e->series = *key;
    e->len = len;
    at = e->key;
    *at++ = (char)key->side;
    *at++ = (char)key->status;
    at += put_text(at, &e->series.worker, key->worker);
    at += put_text(at, &e->series.method, key->method);
    put_text(at, &e->series.peer, key->peer);
    return e;
}

/* Takes `fresh`. */
static uint32_t entry_add(struct entry *fresh)
{
    struct entry *e;
    uint32_t number = 0;

    pthread_mutex_lock(&lock);
    HASH_FIND(hh, by_key, fresh->key, fresh->len, e);
    if (e) {
        number = e->number;
    } else if (n < SERIES_MAX) {
        HASH_ADD_KEYPTR(hh, by_key, fresh->key, fresh->len, fresh);
        if (hash_has(fresh)) {
            number = fresh->number = n + 1;
            atomic_store_explicit(&by_number[n++], fresh, memory_order_release);
            fresh = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
    free(fresh);
    return number;
}

uint32_t series_number(const struct series *key)
{
    struct entry *fresh;

    forks_follow(&fork_hook);
    fresh = entry_new(key);
    return fresh ? entry_add(fresh) : 0;
}

const struct series *series_get(uint32_t number)
{
    const struct entry *e = number >= 1 && number <= SERIES_MAX
                                ? atomic_load_explicit(&by_number[number - 1], memory_order_acquire)
                                : NULL;

    return e ? &e->series : NULL;
}

void series_drop(void)
{
    atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
}

uint64_t series_dropped(void)
{
    return atomic_load_explicit(&dropped, memory_order_relaxed);
}
