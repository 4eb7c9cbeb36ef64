/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - contexts, streams and events. */
#include "cuda/device.h"
#include "cuda/import.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Recycled events of a device; all shared events are kept, because peers hold their handles. */
#define EVENTS_KEPT 64

struct device {
    pthread_mutex_t lock;
    struct CUctx_st *context;                   /* under lock until it is made */
    atomic_bool ready;                          /* it is */
    struct CUstream_st *stream[DEVICE_STREAMS]; /* under lock until it is made */
    unsigned next_stream;                       /* under lock */
    struct device_event *events[2];             /* under lock; [1] of shared ones */
    unsigned n_events[2];
    unsigned char uuid[16];
    bool has_uuid;
};

static struct {
    pthread_once_t once;
    tenrec_status status;
    tenrec_error why;
    int n;
    struct device device[DEVICES_MAX];
} all = { .once = PTHREAD_ONCE_INIT };

static atomic_uint holders;

static void open_once(void)
{
    all.status = driver_open(&all.why);
    if (!all.status)
        all.status = DRIVER(device_count, -1, &all.why, &all.n);
    if (!all.status && all.n < 1)
        all.status = tenrec_fail(&all.why, TENREC_EUNSUPPORTED, "the CUDA driver has no device");
    if (all.status) {
        all.status = all.why.code = TENREC_EUNSUPPORTED;
        all.n = 0;
        return;
    }
    if (all.n > DEVICES_MAX)
        all.n = DEVICES_MAX;
    for (int i = 0; i < all.n; i++) {
        struct device *d = &all.device[i];
        struct driver_uuid uuid;

        pthread_mutex_init(&d->lock, NULL);
        /* Without one the device is not reached from other processes, no more. */
        d->has_uuid = driver()->device_uuid(&uuid, i) == DRIVER_SUCCESS;
        memcpy(d->uuid, uuid.bytes, sizeof d->uuid);
    }
}

tenrec_status devices_open(uint32_t *ret_n, tenrec_error *err)
{
    pthread_once(&all.once, open_once);
    *ret_n = (uint32_t)all.n;
    if (all.status && err)
        *err = all.why;
    return all.status;
}

bool device_uuid(int index, unsigned char ret[16])
{
    if (index < 0 || index >= all.n || !all.device[index].has_uuid)
        return false;
    memcpy(ret, all.device[index].uuid, 16);
    return true;
}

int device_of_uuid(const unsigned char uuid[16])
{
    for (int i = 0; i < all.n; i++)
        if (all.device[i].has_uuid && memcmp(all.device[i].uuid, uuid, 16) == 0)
            return i;
    return -1;
}

bool device_reaches(int from, int to)
{
    int can = 0;

    return from == to || (driver()->device_can_access(&can, from, to) == DRIVER_SUCCESS && can);
}

/* ---- contexts ---- */

static tenrec_status make_ready(struct device *d, int index, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    pthread_mutex_lock(&d->lock);
    if (!d->context)
        st = DRIVER(context_retain, index, err, &d->context, index);
    if (st)
        d->context = NULL;
    else
        atomic_store(&d->ready, true);
    pthread_mutex_unlock(&d->lock);
    return st;
}

/* The devices that this thread has entered, one within the other: to enter the innermost again
 * calls no driver. */
#define NEST_MAX 4
static _Thread_local struct {
    struct {
        int index;
        unsigned times;
    } at[NEST_MAX];
    unsigned n;
} nest;

static bool nest_has(int index)
{
    return nest.n > 0 && nest.at[nest.n - 1].index == index;
}

tenrec_status device_check(int index, tenrec_error *err)
{
    uint32_t n;
    tenrec_status st = devices_open(&n, err);

    if (!st && (index < 0 || index >= all.n))
        st = tenrec_fail(err, TENREC_EINVAL, "cuda:%d: this process sees %d devices", index, all.n);
    return st;
}

tenrec_status device_enter(int index, tenrec_error *err)
{
    struct device *d;
    tenrec_status st;

    if (nest_has(index)) {
        nest.at[nest.n - 1].times++;
        return TENREC_OK;
    }
    st = device_check(index, err);
    if (st)
        return st;
    d = &all.device[index];
    if (!atomic_load_explicit(&d->ready, memory_order_acquire))
        st = make_ready(d, index, err);
    if (!st && nest.n == NEST_MAX)
        st = tenrec_fail(err, TENREC_EINVAL, "cuda:%d: %d devices are entered already", index,
                         NEST_MAX);
    if (!st)
        st = DRIVER(context_push, index, err, d->context);
    if (st)
        return st;
    nest.at[nest.n].index = index;
    nest.at[nest.n++].times = 1;
    return TENREC_OK;
}

void device_leave(void)
{
    struct CUctx_st *left;

    if (--nest.at[nest.n - 1].times > 0)
        return;
    nest.n--;
    driver()->context_pop(&left);
}

/* ---- streams ---- */

static tenrec_status stream_make(int index, struct CUstream_st **s, tenrec_error *err)
{
    struct device *d = &all.device[index];
    tenrec_status st = device_enter(index, err);

    if (st)
        return st;
    pthread_mutex_lock(&d->lock);
    if (!*s)
        st = DRIVER(stream_new, index, err, s, DRIVER_STREAM_NON_BLOCKING);
    if (st)
        *s = NULL;
    pthread_mutex_unlock(&d->lock);
    device_leave();
    return st;
}

/* The next stream of the device's pool; it is never destroyed. */
static tenrec_status device_stream(int index, uint64_t *ret, tenrec_error *err)
{
    tenrec_status st = device_check(index, err);
    struct CUstream_st **s, *stream;
    struct device *d;

    if (st)
        return st;
    d = &all.device[index];
    pthread_mutex_lock(&d->lock);
    s = &d->stream[d->next_stream++ % DEVICE_STREAMS];
    stream = *s;
    pthread_mutex_unlock(&d->lock);
    if (!stream)
        st = stream_make(index, s, err);
    *ret = st ? 0 : (uintptr_t)*s;
    return st;
}

/* ---- events ---- */

static void event_free(struct device_event *e)
{
    if (e->event && device_enter(e->device, NULL) == TENREC_OK) {
        driver()->event_drop(e->event);
        device_leave();
    }
    free(e);
}

/* With the device entered, as the next. */
static tenrec_status event_make(int index, bool shared, struct device_event **ret,
                                tenrec_error *err)
{
    struct device_event *e = calloc(1, sizeof *e);
    tenrec_status st;

    if (!e)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for an event of cuda:%d", index);
    e->device = index;
    e->shared = shared;
    st = DRIVER(event_new, index, err, &e->event,
                DRIVER_EVENT_DISABLE_TIMING | (shared ? DRIVER_EVENT_INTERPROCESS : 0u));
    if (st)
        e->event = NULL;
    else if (shared)
        st = DRIVER(ipc_event, index, err, &e->handle, e->event);
    if (st)
        event_free(e);
    else
        *ret = e;
    return st;
}

static tenrec_status event_get(int index, bool shared, struct device_event **ret, tenrec_error *err)
{
    struct device *d = &all.device[index];
    struct device_event *e;

    pthread_mutex_lock(&d->lock);
    e = d->events[shared];
    if (e) {
        d->events[shared] = e->next;
        d->n_events[shared]--;
    }
    pthread_mutex_unlock(&d->lock);
    if (!e)
        return event_make(index, shared, ret, err);
    *ret = e;
    return TENREC_OK;
}

void device_event_give(struct device_event *e)
{
    struct device *d;

    if (!e)
        return;
    d = &all.device[e->device];
    pthread_mutex_lock(&d->lock);
    if (atomic_load(&holders) && (e->shared || d->n_events[0] < EVENTS_KEPT)) {
        e->next = d->events[e->shared];
        d->events[e->shared] = e;
        d->n_events[e->shared]++;
        e = NULL;
    }
    pthread_mutex_unlock(&d->lock);
    if (e)
        event_free(e);
}

tenrec_status device_event_query(struct device_event *e, tenrec_error *err)
{
    tenrec_status st = device_enter(e->device, err);
    driver_result r;

    if (st)
        return st;
    r = driver()->event_query(e->event);
    if (r != DRIVER_NOT_READY)
        st = driver_check(r, driver_symbol(offsetof(struct driver, event_query)), e->device, err);
    device_leave();
    return r == DRIVER_NOT_READY ? TENREC_EAGAIN : st;
}

tenrec_status device_event_mark(const struct tenrec_stream *s, bool shared,
                                struct device_event **ret, tenrec_error *err)
{
    const int index = s->device.index;
    struct device_event *e = NULL;
    tenrec_status st = device_enter(index, err);

    if (st)
        return st;
    st = event_get(index, shared, &e, err);
    if (!st)
        st = DRIVER(event_record, index, err, e->event, (void *)(uintptr_t)s->stream);
    device_leave();
    if (st)
        device_event_give(e);
    else
        *ret = e;
    return st;
}

tenrec_status device_event_wait(const struct tenrec_stream *s, const struct device_event *e,
                                tenrec_error *err)
{
    const int index = s->device.index;
    tenrec_status st = device_enter(index, err);

    if (st)
        return st;
    st = DRIVER(stream_wait, index, err, (void *)(uintptr_t)s->stream, e->event, 0);
    device_leave();
    return st;
}

/* A wait remembers what was recorded when it was queued, so the event is free
 * again at once. */
static tenrec_status device_order(const struct tenrec_stream *first,
                                  const struct tenrec_stream *then, tenrec_error *err)
{
    struct device_event *e;
    tenrec_status st;

    if (first->device.kind != TENREC_CUDA || then->device.kind != TENREC_CUDA ||
        (first->device.index == then->device.index && first->stream == then->stream))
        return TENREC_OK;
    st = device_event_mark(first, false, &e, err);
    if (st)
        return st;
    st = device_event_wait(then, e, err);
    device_event_give(e);
    return st;
}

tenrec_status device_copy(const struct tenrec_stream *s, void *to, const void *from, uint64_t bytes,
                          tenrec_error *err)
{
    tenrec_status st = device_enter(s->device.index, err);

    if (st)
        return st;
    if (bytes)
        st = DRIVER(copy, s->device.index, err, (uintptr_t)to, (uintptr_t)from, (size_t)bytes,
                    (void *)(uintptr_t)s->stream);
    device_leave();
    return st;
}

tenrec_status device_stream_wait(const struct tenrec_stream *s, tenrec_error *err)
{
    tenrec_status st = device_enter(s->device.index, err);

    if (st)
        return st;
    st = DRIVER(stream_sync, s->device.index, err, (void *)(uintptr_t)s->stream);
    device_leave();
    return st;
}

const struct tenrec_device_ops cuda_device_ops = {
    .size = sizeof(struct tenrec_device_ops),
    .kind = TENREC_CUDA,
    .stream_get = device_stream,
    .stream_order = device_order,
    .stream_wait = device_stream_wait,
    .memory_new = device_memory_new,
    .memory_drop = device_memory_drop,
    .copy = device_copy,
};

/* ---- users ---- */

void devices_hold(void)
{
    atomic_fetch_add(&holders, 1);
}

bool devices_held(void)
{
    return atomic_load(&holders) > 0;
}

void devices_let_go(void)
{
    if (atomic_fetch_sub(&holders, 1) != 1)
        return;
    imports_close(NULL);
    for (int i = 0; i < all.n; i++) {
        struct device *d = &all.device[i];

        device_memory_trim(i);
        for (int shared = 0; shared < 2; shared++) {
            struct device_event *e;

            pthread_mutex_lock(&d->lock);
            e = d->events[shared];
            d->events[shared] = NULL;
            d->n_events[shared] = 0;
            pthread_mutex_unlock(&d->lock);
            while (e) {
                struct device_event *next = e->next;

                event_free(e);
                e = next;
            }
        }
    }
}
