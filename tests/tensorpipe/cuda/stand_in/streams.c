/* SPDX-License-Identifier: Apache-2.0 */
/* streams.c - a thread per stream, that does what is queued, late. */
#include "stand_in.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

EXPORT int cuStreamCreate(struct CUstream_st **ret, unsigned flags);
EXPORT int cuStreamSynchronize(struct CUstream_st *s);
EXPORT int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, struct CUstream_st *s);
EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, struct CUstream_st *s);
EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, struct CUstream_st *s);
EXPORT int cuMemsetD32Async(uint64_t to, unsigned value, size_t n, struct CUstream_st *s);
EXPORT int cuLaunchHostFunc(struct CUstream_st *s, void (*fn)(void *arg), void *arg);
EXPORT void fake_cuda_delay(struct CUstream_st *s, unsigned us);

#define MAGIC 0x73747265u
#define POISON 0xa5

enum what { COPY, SET, RECORD, WAIT, DELAY, LAUNCH };

struct operation {
    struct operation *next;
    enum what what;
    struct operand to, from;
    size_t len; /* bytes, or microseconds */
    unsigned value;
    void (*fn)(void *arg);
    void *arg;
    struct event_state *event;
    unsigned number; /* of the event's recordings */
    bool counted;
};

struct CUstream_st {
    unsigned magic;
    unsigned random;
    long longest_us;
    struct CUctx_st *ctx;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct operation *first, **last; /* under lock; the first may be under way */
};

struct CUctx_st *stream_context(const struct CUstream_st *s)
{
    return s->ctx;
}

/* ---- events ---- */

bool event_is_done(struct event_state *e, unsigned number)
{
    /* The queued work of a process ends with it. */
    return atomic_load(&e->completed) >= number ||
           (kill(atomic_load(&e->recorder), 0) != 0 && atomic_load(&e->recorder));
}

static void event_unref(struct event_state *e)
{
    if (atomic_fetch_sub(&e->refs, 1) == 1)
        free(e);
}

/* ---- the thread ---- */

/* Keeps the stream busy for so long: what is queued meanwhile does not shorten it. */
static void work(struct CUstream_st *s, uint64_t us)
{
    struct timespec deadline;
    uint64_t ns;

    clock_gettime(CLOCK_MONOTONIC, &deadline);
    ns = (uint64_t)deadline.tv_nsec + us * 1000;
    deadline.tv_sec += (time_t)(ns / 1000000000);
    deadline.tv_nsec = (long)(ns % 1000000000);
    pthread_mutex_lock(&s->lock);
    while (pthread_cond_timedwait(&s->changed, &s->lock, &deadline) != ETIMEDOUT)
        continue;
    pthread_mutex_unlock(&s->lock);
}

/* The time that a device needs for what it does. */
static void nap(struct CUstream_st *s)
{
    if (s->longest_us > 0)
        work(s, (uint64_t)(rand_r(&s->random) % s->longest_us));
}

static void complete(struct event_state *e, unsigned number)
{
    unsigned before = atomic_load(&e->completed);

    while (before < number && !atomic_compare_exchange_weak(&e->completed, &before, number))
        continue;
    word_wake(&e->completed);
}

static void await(struct event_state *e, unsigned number)
{
    uint64_t started = 0;

    while (!event_is_done(e, number)) {
        const unsigned now = atomic_load(&e->completed);

        if (now < number)
            word_wait(&e->completed, now, &started, "cuStreamWaitEvent");
    }
}

static void execute(struct CUstream_st *s, struct operation *o)
{
    nap(s);
    switch (o->what) {
    case COPY:
        memset(o->to.bytes, POISON, o->len);
        nap(s);
        memmove(o->to.bytes, o->from.bytes, o->len);
        break;
    case SET:
        memset(o->to.bytes, POISON, o->len);
        nap(s);
        for (size_t i = 0; i < o->len / sizeof o->value; i++)
            memcpy(o->to.bytes + i * sizeof o->value, &o->value, sizeof o->value);
        break;
    case RECORD:
        complete(o->event, o->number);
        break;
    case WAIT:
        await(o->event, o->number);
        break;
    case DELAY:
        work(s, o->len);
        break;
    case LAUNCH:
        o->fn(o->arg);
        break;
    }
    operand_drop(&o->to);
    operand_drop(&o->from);
    if (o->counted)
        event_unref(o->event);
}

static void *stream_main(void *arg)
{
    struct CUstream_st *s = arg;

    pthread_mutex_lock(&s->lock);
    for (;;) {
        struct operation *o;

        while (!s->first)
            pthread_cond_wait(&s->changed, &s->lock);
        o = s->first;
        pthread_mutex_unlock(&s->lock);
        execute(s, o);
        pthread_mutex_lock(&s->lock);
        s->first = o->next;
        if (!s->first)
            s->last = &s->first;
        free(o);
        pthread_cond_broadcast(&s->changed);
    }
    return NULL;
}

static struct CUstream_st *make(struct CUctx_st *ctx)
{
    static atomic_uint made;
    struct CUstream_st *s = calloc(1, sizeof *s);
    pthread_condattr_t monotonic;
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t every, before;

    if (!s)
        return NULL;
    s->magic = MAGIC;
    s->random = (unsigned)setting("FAKE_CUDA_SEED", 1) * 7919 + atomic_fetch_add(&made, 1);
    s->longest_us = setting("FAKE_CUDA_DELAY_US", 200);
    s->ctx = ctx;
    s->last = &s->first;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, 256 << 10);
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    if (pthread_create(&thread, &attr, stream_main, s))
        abort();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return s;
}

/* NULL is the default stream of the current context. */
struct CUstream_st *stream_of(struct CUstream_st *s, const char *call)
{
    struct CUctx_st *ctx = context();

    if (!ctx) {
        misuse("%s without a current context", call);
        return NULL;
    }
    if (!s || s == (struct CUstream_st *)1) {
        pthread_mutex_lock(&ctx->lock);
        if (!ctx->default_stream)
            ctx->default_stream = make(ctx);
        s = ctx->default_stream;
        pthread_mutex_unlock(&ctx->lock);
        return s;
    }
    if (s->magic != MAGIC || s->ctx != ctx) {
        misuse("%s on a stream of another context", call);
        return NULL;
    }
    return s;
}

static void queue(struct CUstream_st *s, const struct operation *what)
{
    struct operation *o = malloc(sizeof *o);

    if (!o)
        abort();
    *o = *what;
    o->next = NULL;
    pthread_mutex_lock(&s->lock);
    *s->last = o;
    s->last = &o->next;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

int stream_record(struct CUstream_st *s, struct event_state *e, bool counted)
{
    struct operation o = { .what = RECORD, .event = e, .counted = counted };

    if (counted)
        atomic_fetch_add(&e->refs, 1);
    atomic_store(&e->recorder, (int)getpid());
    o.number = atomic_fetch_add(&e->recorded, 1) + 1;
    queue(s, &o);
    return SUCCESS;
}

int stream_wait_for(struct CUstream_st *s, struct event_state *e, bool counted)
{
    struct operation o = { .what = WAIT, .event = e, .counted = counted };

    if (counted)
        atomic_fetch_add(&e->refs, 1);
    o.number = atomic_load(&e->recorded);
    queue(s, &o);
    return SUCCESS;
}

/* ---- the driver's functions ---- */

int cuStreamCreate(struct CUstream_st **ret, unsigned flags)
{
    CALL;
    (void)flags;
    if (!context())
        return INVALID_CONTEXT;
    *ret = make(context());
    if (!*ret)
        return OUT_OF_MEMORY;
    atomic_fetch_add(&live[LIVE_STREAMS], 1);
    return SUCCESS;
}

int cuLaunchHostFunc(struct CUstream_st *s, void (*fn)(void *arg), void *arg)
{
    struct operation o = { .what = LAUNCH, .fn = fn, .arg = arg };

    CALL;
    s = stream_of(s, __func__);
    if (!s)
        return INVALID_HANDLE;
    queue(s, &o);
    return SUCCESS;
}

int cuStreamSynchronize(struct CUstream_st *s)
{
    CALL;
    s = stream_of(s, __func__);
    if (!s)
        return INVALID_HANDLE;
    pthread_mutex_lock(&s->lock);
    while (s->first)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    return SUCCESS;
}

static int copy(const char *call, uintptr_t to, bool to_host, uintptr_t from, bool from_host,
                size_t bytes, struct CUstream_st *s)
{
    struct operation o = { .what = COPY, .len = bytes };

    s = stream_of(s, call);
    if (!s)
        return INVALID_HANDLE;
    if (!bytes)
        return SUCCESS;
    if (!operand_find(call, to, bytes, to_host, &o.to))
        return INVALID_VALUE;
    if (!operand_find(call, from, bytes, from_host, &o.from)) {
        operand_drop(&o.to);
        return INVALID_VALUE;
    }
    queue(s, &o);
    return SUCCESS;
}

int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, struct CUstream_st *s)
{
    CALL;
    return copy(__func__, to, true, from, true, bytes, s);
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, struct CUstream_st *s)
{
    CALL;
    return copy(__func__, (uintptr_t)to, true, from, false, bytes, s);
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, struct CUstream_st *s)
{
    CALL;
    return copy(__func__, to, false, (uintptr_t)from, true, bytes, s);
}

int cuMemsetD32Async(uint64_t to, unsigned value, size_t n, struct CUstream_st *s)
{
    struct operation o = { .what = SET, .len = n * sizeof value, .value = value };

    CALL;
    s = stream_of(s, __func__);
    if (!s)
        return INVALID_HANDLE;
    if (!operand_find(__func__, to, o.len, false, &o.to))
        return INVALID_VALUE;
    queue(s, &o);
    return SUCCESS;
}

/* Delays later work on `s` by that time. */
void fake_cuda_delay(struct CUstream_st *s, unsigned us)
{
    s = stream_of(s, __func__);
    if (s)
        queue(s, &(struct operation){ .what = DELAY, .len = us });
}
