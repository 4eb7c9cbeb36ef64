/* SPDX-License-Identifier: Apache-2.0 */

#include "devices.h"
#include "../support/debug_info.h"
#include "../support/tensors.h"

#include "../inproc/pretend.h"

#include <dlfcn.h>
#include <pthread.h>

enum what { ADD, MULTIPLY, SUBTRACT, FILL, PUT };

struct kernel {
    enum what what;
    float *z;
    const float *x, *y; /* NULL: not used */
    float value;
    int64_t n;
};

/* The used functions of the driver. */
struct driver {
    int (*retain)(void **ret, int device);
    int (*push)(void *ctx);
    int (*pop)(void **ret);
    int (*host_alloc)(void **ret, size_t bytes, unsigned flags);
    int (*to_host)(void *to, uint64_t from, size_t bytes, void *stream);
    int (*to_device)(uint64_t to, const void *from, size_t bytes, void *stream);
    int (*launch)(void *stream, void (*fn)(void *arg), void *arg);
    void (*delay)(void *stream, unsigned us); /* of the stand-in; else NULL */
};

struct behind {
    const struct pretend_ops *pretend; /* inproc's; else the driver's: */
    struct driver driver;
};
static struct behind behind;
static bool is_known;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards both until it is known */
static pthread_cond_t found = PTHREAD_COND_INITIALIZER;

#define KNOWN_WITHIN_S 10

/* The result of devices_use, perhaps on another thread: a peer's call may be served
 * before the body that made the worker comes to it. */
static const struct behind *known(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += KNOWN_WITHIN_S;
    pthread_mutex_lock(&lock);
    while (!is_known)
        if (pthread_cond_timedwait(&found, &lock, &until) != 0) {
            pthread_mutex_unlock(&lock);
            fail_msg("devices_use was not called within %d s", KNOWN_WITHIN_S);
        }
    pthread_mutex_unlock(&lock);
    return &behind;
}

static void find_pretended(void *arg, const char *key, const char *value)
{
    const char *dot = strrchr(key, '.');

    (void)arg;
    if (dot && strcmp(dot, ".devices") == 0 && strncmp(key, "inproc", 6) == 0)
        behind.pretend = (const struct pretend_ops *)(uintptr_t)strtoull(value, NULL, 10);
}

static void find_driver(void)
{
    static const char *const name[] = { "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2",
                                        "cuCtxPopCurrent_v2",       "cuMemHostAlloc",
                                        "cuMemcpyDtoHAsync_v2",     "cuMemcpyHtoDAsync_v2",
                                        "cuLaunchHostFunc",         "fake_cuda_delay" };
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), **at = (void **)&behind.driver;

    assert_non_null(driver);
    _Static_assert(sizeof name / sizeof name[0] == sizeof behind.driver / sizeof *at,
                   "a name for each function");
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++)
        at[i] = dlsym(driver, name[i]);
    assert_non_null(behind.driver.launch);
}

void devices_use(struct tenrec_worker *w)
{
    pthread_mutex_lock(&lock);
    if (!is_known) {
        debug_info_each(w, find_pretended, NULL);
        if (!behind.pretend)
            find_driver();
        is_known = true;
        pthread_cond_broadcast(&found);
    }
    pthread_mutex_unlock(&lock);
}

int32_t device_index(int32_t i)
{
    const char *text = getenv("PARITY_DEVICES");
    const int32_t there = text ? (int32_t)strtol(text, NULL, 10) : 0;

    return there > 0 ? i % there : i;
}

bool same_device(struct tenrec_device a, struct tenrec_device b)
{
    return a.kind == b.kind && a.index == b.index;
}

static void run(void *arg)
{
    struct kernel *k = arg;

    for (int64_t i = 0; i < k->n; i++) {
        switch (k->what) {
        case ADD:
            k->z[i] = k->x[i] + k->y[i];
            break;
        case MULTIPLY:
            k->z[i] = k->x[i] * k->y[i];
            break;
        case SUBTRACT:
            k->z[i] = k->x[i] - k->y[i];
            break;
        case FILL:
            k->z[i] = k->value;
            break;
        case PUT:
            k->z[i] = k->x[i];
            break;
        }
    }
    free(k);
}

static void ok(int result)
{
    if (result != 0)
        fail_msg("the driver says %d", result);
}

/* Pinned, for the process's whole life: a kernel may not free it. */
static float *staging(int64_t n)
{
    void *ret = NULL;

    ok(known()->driver.host_alloc(&ret, (size_t)n * sizeof(float), 0));
    return ret;
}

/* Elements are brought to the host, worked on there, and brought back, all in
 * their places in the stream. */
static void launch_by_driver(const struct tenrec_stream *s, struct kernel *k)
{
    const struct driver *d = &known()->driver;
    const size_t bytes = (size_t)k->n * sizeof(float);
    void *stream = (void *)(uintptr_t)s->stream, *ctx = NULL;
    float *to = k->z;

    ok(d->retain(&ctx, s->device.index));
    ok(d->push(ctx));
    for (const float **from = &k->x; from <= &k->y; from++) {
        float *host;

        if (!*from)
            continue;
        host = staging(k->n);
        ok(d->to_host(host, (uint64_t)(uintptr_t)*from, bytes, stream));
        *from = host;
    }
    k->z = staging(k->n);
    {
        const float *host = k->z; /* k goes when it has run */

        ok(d->launch(stream, run, k));
        ok(d->to_device((uint64_t)(uintptr_t)to, host, bytes, stream));
    }
    ok(d->pop(&ctx));
}

static void launch(struct tenrec_device device, struct kernel kernel)
{
    const struct tenrec_stream s = { device, tenrec_stream_get_current(device) };
    struct kernel *k = malloc(sizeof *k);

    *k = kernel;
    if (device.kind == TENREC_CPU)
        run(k);
    else if (known()->pretend)
        known()->pretend->launch(&s, run, k);
    else
        launch_by_driver(&s, k);
}

void device_delay(struct tenrec_device device)
{
    void *ctx = NULL;

    if (!known()->driver.delay) /* what is pretended is always late */
        return;
    ok(known()->driver.retain(&ctx, device.index));
    ok(known()->driver.push(ctx));
    known()->driver.delay((void *)(uintptr_t)tenrec_stream_get_current(device), 20000);
    ok(known()->driver.pop(&ctx));
}

struct tenrec_tensor *vector_on(struct tenrec_device device, int64_t n, float x)
{
    struct tenrec_tensor *t = NULL;
    tenrec_error err;

    assert_status(tensors_new_on(device, TENREC_FLOAT32, 1, &n, &t, &err), &err);
    vector_fill(t, x);
    return t;
}

void vector_fill(struct tenrec_tensor *t, float x)
{
    launch(tenrec_tensor_desc(t)->device, (struct kernel){ .what = FILL,
                                                           .z = tenrec_tensor_data(t),
                                                           .value = x,
                                                           .n = (int64_t)tenrec_tensor_count(t) });
}

void vector_put(struct tenrec_tensor *to, struct tenrec_tensor *from)
{
    launch(tenrec_tensor_desc(to)->device,
           (struct kernel){ .what = PUT,
                            .z = tenrec_tensor_data(to),
                            .x = tenrec_tensor_data(from),
                            .n = (int64_t)tenrec_tensor_count(to) });
}

static tenrec_status both(enum what what, struct tenrec_tensor *x, struct tenrec_tensor *y,
                          struct tenrec_tensor **ret, tenrec_error *err)
{
    const struct tenrec_tensor_desc *a = tenrec_tensor_desc(x), *b = tenrec_tensor_desc(y);
    tenrec_status st;

    if (!same_device(a->device, b->device))
        return tenrec_fail(err, TENREC_EINVAL,
                           "expected all tensors to be on the same device, found at least two");
    st = tensors_new_on(a->device, a->dtype, a->ndim, a->shape, ret, err);
    if (st == TENREC_OK)
        launch(a->device, (struct kernel){ .what = what,
                                           .z = tenrec_tensor_data(*ret),
                                           .x = tenrec_tensor_data(x),
                                           .y = tenrec_tensor_data(y),
                                           .n = (int64_t)tenrec_tensor_count(x) });
    return st;
}

tenrec_status vector_add(struct tenrec_tensor *x, struct tenrec_tensor *y,
                         struct tenrec_tensor **ret, tenrec_error *err)
{
    return both(ADD, x, y, ret, err);
}

tenrec_status vector_multiply(struct tenrec_tensor *x, struct tenrec_tensor *y,
                              struct tenrec_tensor **ret, tenrec_error *err)
{
    return both(MULTIPLY, x, y, ret, err);
}

tenrec_status vector_subtract(struct tenrec_tensor *x, struct tenrec_tensor *y,
                              struct tenrec_tensor **ret, tenrec_error *err)
{
    return both(SUBTRACT, x, y, ret, err);
}

struct tenrec_stream device_switch(struct tenrec_device device)
{
    const struct tenrec_stream former = { device, tenrec_stream_get_current(device) };
    struct tenrec_stream s;
    tenrec_error err;

    do /* the pool may be about to hand out the same one */
        assert_status(tenrec_stream_get(device, &s, &err), &err);
    while (s.stream == former.stream);
    assert_status(tenrec_stream_set_current(&s, &err), &err);
    return former;
}

void device_switch_back(const struct tenrec_stream *former)
{
    tenrec_error err;

    assert_status(tenrec_stream_set_current(former, &err), &err);
}

void assert_vector(struct tenrec_tensor *t, struct tenrec_device device, float x)
{
    const struct tenrec_tensor_desc *d = tenrec_tensor_desc(t);
    struct tenrec_tensor *here = NULL;
    const float *at;
    uint64_t n;
    tenrec_error err;

    if (!same_device(d->device, device))
        fail_msg("the tensor is on device %d:%d, expected %d:%d", d->device.kind, d->device.index,
                 device.kind, device.index);
    assert_status(tenrec_tensor_to(t, CPU, &here, &err), &err);
    at = tenrec_tensor_data(here);
    n = tenrec_tensor_count(here);
    for (uint64_t i = 0; i < n; i++)
        if (at[i] != x)
            fail_msg("element %llu is %g, expected %g", (unsigned long long)i, (double)at[i],
                     (double)x);
    tenrec_tensor_drop(here);
}

void assert_vector_value(const struct tenrec_value *v, struct tenrec_device device, float x)
{
    assert_int_equal(v->type, TENREC_VALUE_TENSOR);
    assert_vector(v->u.tensor, device, x);
}

int devices_live(void)
{
    return known()->pretend ? (int)known()->pretend->live() : -1;
}
