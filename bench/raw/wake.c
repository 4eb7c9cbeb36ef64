/* SPDX-License-Identifier: Apache-2.0 */
/* wake.c - the cheapest ways for one process to wake another: an eventfd, and a
 * futex in shared memory. */
#include "raw.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define END UINT32_MAX /* instead of a number: the other process ends */

/* ---- eventfd ------------------------------------------------------------------------ */

struct events {
    int fd[2]; /* [0] wakes the callee */
};

static void event_prepare(struct trial *t)
{
    struct events *e = calloc(1, sizeof *e);

    if (!e)
        pair_die("calloc");
    for (int i = 0; i < 2; i++)
        if ((e->fd[i] = eventfd(0, 0)) < 0)
            pair_die("eventfd");
    t->state = e;
}

static int event_serve(struct trial *t)
{
    struct events *e = t->state;
    uint64_t n;

    while (pair_read(e->fd[0], &n, sizeof n) && n < END)
        pair_write(e->fd[1], &n, sizeof n);
    return 0;
}

static void event_open(struct trial *t)
{
    (void)t;
}

static void event_call(struct trial *t)
{
    struct events *e = t->state;
    uint64_t n = 1;

    pair_write(e->fd[0], &n, sizeof n);
    pair_read(e->fd[1], &n, sizeof n);
}

static void event_close(struct trial *t)
{
    uint64_t n = END;

    pair_write(((struct events *)t->state)->fd[0], &n, sizeof n);
}

const struct way raw_eventfd = { .peer = "raw",
                                 .via = "eventfd",
                                 .modes = "latency",
                                 .progress = "sleep",
                                 .prepare = event_prepare,
                                 .serve = event_serve,
                                 .open = event_open,
                                 .call = event_call,
                                 .close = event_close };

/* ---- futex -------------------------------------------------------------------------- */

struct words {
    _Alignas(128) _Atomic uint32_t there;
    _Alignas(128) _Atomic uint32_t back;
};

static size_t word_bytes(size_t size)
{
    (void)size;
    return sizeof(struct words);
}

static void futex(_Atomic uint32_t *word, int op, uint32_t value)
{
    syscall(SYS_futex, word, op, value, NULL, NULL, 0);
}

static uint32_t word_wait(_Atomic uint32_t *word, uint32_t old)
{
    uint32_t now;

    while ((now = atomic_load(word)) == old)
        futex(word, FUTEX_WAIT, old);
    return now;
}

static void word_post(_Atomic uint32_t *word, uint32_t value)
{
    atomic_store(word, value);
    futex(word, FUTEX_WAKE, 1);
}

static int word_serve(struct trial *t)
{
    struct words *w = t->shared;
    uint32_t last = 0;

    while ((last = word_wait(&w->there, last)) != END)
        word_post(&w->back, last);
    return 0;
}

static void word_call(struct trial *t)
{
    struct words *w = t->shared;
    uint32_t last = atomic_load(&w->back);

    word_post(&w->there, last + 1);
    word_wait(&w->back, last);
}

static void word_close(struct trial *t)
{
    word_post(&((struct words *)t->shared)->there, END);
}

const struct way raw_futex = { .peer = "raw",
                               .via = "futex",
                               .modes = "latency",
                               .progress = "sleep",
                               .shared_bytes = word_bytes,
                               .serve = word_serve,
                               .open = event_open,
                               .call = word_call,
                               .close = word_close };
