/* SPDX-License-Identifier: Apache-2.0 */
#include "pretend.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEVICES = 8,
    POOL = 4, /* few: their users do share them */
    NEW = 0xa5,
    FREED = 0x5a,
};

enum kind { COPY, RECORD, WAIT, FREE, CALL };

struct queue;

/* Set by a RECORD, looked at by WAITs that were queued after it. */
struct event {
    struct queue *on;
    unsigned refs;
    bool done;
};

struct op {
    struct op *next;
    enum kind kind;
    struct event *event;
    void *to;
    const void *from;
    uint64_t bytes;
    void (*fn)(void *arg);
    void *arg;
};

/* One stream. */
struct queue {
    struct op *first, **last;
    bool running;
};

struct block {
    struct block *next;
    char *data;
    uint64_t bytes;
    int32_t device;
};

/* Recursive: what is called may queue more. Guards all. */
static pthread_mutex_t lock;
static struct queue queue[DEVICES][POOL + 1];
static unsigned turn[DEVICES];
static struct block *blocks;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make(void)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &attr);
    pthread_mutexattr_destroy(&attr);
    for (int d = 0; d < DEVICES; d++)
        for (int i = 0; i <= POOL; i++)
            queue[d][i].last = &queue[d][i].first;
}

static void enter(void)
{
    pthread_once(&once, make);
    pthread_mutex_lock(&lock);
}

static void leave(void)
{
    pthread_mutex_unlock(&lock);
}

/* 0 is the default stream; those of the pool count from 1. Misuse ends the test. */
static struct queue *queue_of(const struct tenrec_stream *s)
{
    if (s->device.kind != TENREC_CUDA || s->device.index < 0 || s->device.index >= DEVICES ||
        (s->stream != 0 && s->stream / 100 != (uint64_t)s->device.index + 1) ||
        s->stream % 100 > POOL)
        abort();
    return &queue[s->device.index][s->stream % 100];
}

static void push(struct queue *q, struct op op)
{
    struct op *copy = malloc(sizeof *copy);

    if (!copy)
        abort();
    *copy = op;
    copy->next = NULL;
    *q->last = copy;
    q->last = &copy->next;
}

static void event_drop(struct event *e)
{
    if (--e->refs == 0)
        free(e);
}

/* ---- doing ------------------------------------------------------------------ */

static struct block **find(const void *data)
{
    struct block **at = &blocks;

    while (*at &&
           !((const char *)data >= (*at)->data && (const char *)data < (*at)->data + (*at)->bytes))
        at = &(*at)->next;
    return at;
}

static void free_block(void *data)
{
    struct block **at = find(data), *b = *at;

    if (!b)
        abort(); /* twice */
    *at = b->next;
    memset(b->data, FREED, b->bytes);
    free(b->data);
    free(b);
}

static void run(struct queue *q, const struct event *until);

static void do_one(struct op *op)
{
    switch (op->kind) {
    case COPY:
        memmove(op->to, op->from, op->bytes);
        break;
    case RECORD:
        op->event->done = true;
        event_drop(op->event);
        break;
    case WAIT:
        if (!op->event->done)
            run(op->event->on, op->event);
        event_drop(op->event);
        break;
    case FREE:
        free_block(op->to);
        break;
    case CALL:
        op->fn(op->arg);
        break;
    }
}

/* All that is queued, or up to an event. */
static void run(struct queue *q, const struct event *until)
{
    if (q->running)
        abort(); /* waits for itself */
    q->running = true;
    while (q->first && !(until && until->done)) {
        struct op *op = q->first;

        q->first = op->next;
        if (!q->first)
            q->last = &q->first;
        do_one(op);
        free(op);
    }
    q->running = false;
}

void pretend_finish(void)
{
    enter();
    for (int d = 0; d < DEVICES; d++)
        for (int i = 0; i <= POOL; i++)
            run(&queue[d][i], NULL);
    leave();
}

/* ---- what the core calls ------------------------------------------------------ */

static tenrec_status stream_get(int32_t index, uint64_t *ret, tenrec_error *err)
{
    if (index < 0 || index >= DEVICES)
        return tenrec_fail(err, TENREC_EINVAL, "there is no device %d", index);
    enter();
    *ret = (uint64_t)(index + 1) * 100 + 1 + turn[index]++ % POOL;
    leave();
    return TENREC_OK;
}

static tenrec_status stream_order(const struct tenrec_stream *first,
                                  const struct tenrec_stream *then, tenrec_error *err)
{
    struct event *e = calloc(1, sizeof *e);

    if (!e)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for an event");
    enter();
    e->on = queue_of(first);
    e->refs = 2;
    push(e->on, (struct op){ .kind = RECORD, .event = e });
    push(queue_of(then), (struct op){ .kind = WAIT, .event = e });
    leave();
    return TENREC_OK;
}

static tenrec_status stream_wait(const struct tenrec_stream *s, tenrec_error *err)
{
    (void)err;
    enter();
    run(queue_of(s), NULL);
    leave();
    return TENREC_OK;
}

static tenrec_status memory_new(const struct tenrec_stream *s, uint64_t bytes, void **ret,
                                tenrec_error *err)
{
    struct block *b = malloc(sizeof *b);
    char *data = malloc(bytes);

    if (!b || !data || bytes == 0) {
        free(b);
        free(data);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory on a device");
    }
    memset(data, NEW, bytes);
    enter();
    queue_of(s); /* must be one */
    *b = (struct block){ blocks, data, bytes, s->device.index };
    blocks = b;
    leave();
    *ret = data;
    return TENREC_OK;
}

static void memory_drop(const struct tenrec_stream *s, void *data)
{
    enter();
    push(queue_of(s), (struct op){ .kind = FREE, .to = data });
    leave();
}

static tenrec_status copy(const struct tenrec_stream *s, void *to, const void *from, uint64_t bytes,
                          tenrec_error *err)
{
    (void)err;
    enter();
    push(queue_of(s), (struct op){ .kind = COPY, .to = to, .from = from, .bytes = bytes });
    leave();
    return TENREC_OK;
}

static void launch(const struct tenrec_stream *s, void (*fn)(void *arg), void *arg)
{
    enter();
    push(queue_of(s), (struct op){ .kind = CALL, .fn = fn, .arg = arg });
    leave();
}

static unsigned live(void)
{
    unsigned n = 0;

    pretend_finish();
    enter();
    for (struct block *b = blocks; b; b = b->next)
        n++;
    leave();
    return n;
}

const struct pretend_ops pretend_ops = {
    .ops = { .size = sizeof pretend_ops,
             .kind = TENREC_CUDA,
             .stream_get = stream_get,
             .stream_order = stream_order,
             .stream_wait = stream_wait,
             .memory_new = memory_new,
             .memory_drop = memory_drop,
             .copy = copy },
    .launch = launch,
    .live = live,
};
