/* SPDX-License-Identifier: Apache-2.0 */
/* fake.c - see fake.h. Speaks to the driver by itself, apart from what it tests. */
#include "fake.h"

#include "../../testing.h"
#include <dlfcn.h>
#include <stdlib.h>

#define DEVICES_MAX 16
#define KEPT_MAX 512
#define DELAY_US 20000
#define BUSY_BYTES ((size_t)256 << 20)
#define BUSY_TIMES 40

static struct {
    bool tried, stand_in;
    int devices;
    const char *why;
    char text[256];
    void *library;
    void *context[DEVICES_MAX];
    void *kept[KEPT_MAX]; /* pinned, that a stream may still read */
    unsigned n_kept;
    void *busy[DEVICES_MAX];
} fake;

static int (*init)(unsigned);
static int (*device_count)(int *);
static int (*context_retain)(void **, int);
static int (*context_push)(void *);
static int (*context_pop)(void **);
static int (*memory_new)(uint64_t *, size_t);
static int (*memory_drop)(uint64_t);
static int (*host_new)(void **, size_t, unsigned);
static int (*host_drop)(void *);
static int (*to_host)(void *, uint64_t, size_t, void *);
static int (*from_host)(uint64_t, const void *, size_t, void *);
static int (*set)(uint64_t, unsigned, size_t, void *);
static int (*stream_new)(void **, unsigned);
static int (*stream_sync)(void *);
static int (*set_failing)(const char *, unsigned);
static unsigned (*count_calls)(const char *);
static unsigned (*count_all_calls)(void);
static void (*of_test)(bool);
static int (*count_reports)(void);
static int (*count_live)(int);
static int (*is_busy)(uint64_t);
static void (*delay)(void *, unsigned);

static bool look_up(const char *name, void *ret)
{
    void *found = dlsym(fake.library, name);

    memcpy(ret, &found, sizeof found);
    return found != NULL;
}

static bool look_all_up(void)
{
    return look_up("cuInit", &init) && look_up("cuDeviceGetCount", &device_count) &&
           look_up("cuDevicePrimaryCtxRetain", &context_retain) &&
           look_up("cuCtxPushCurrent_v2", &context_push) &&
           look_up("cuCtxPopCurrent_v2", &context_pop) && look_up("cuMemAlloc_v2", &memory_new) &&
           look_up("cuMemFree_v2", &memory_drop) && look_up("cuMemHostAlloc", &host_new) &&
           look_up("cuMemFreeHost", &host_drop) && look_up("cuMemcpyDtoHAsync_v2", &to_host) &&
           look_up("cuMemcpyHtoDAsync_v2", &from_host) && look_up("cuMemsetD32Async", &set) &&
           look_up("cuStreamCreate", &stream_new) && look_up("cuStreamSynchronize", &stream_sync);
}

static void open_driver(void)
{
    int r;

    fake.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!fake.library) {
        snprintf(fake.text, sizeof fake.text, "%s", dlerror());
        fake.why = fake.text;
        return;
    }
    if (!look_all_up()) {
        fake.why = "libcuda.so.1 lacks a function";
        return;
    }
    r = init(0);
    if (!r)
        r = device_count(&fake.devices);
    if (r) {
        snprintf(fake.text, sizeof fake.text, "cuInit: error %d", r);
        fake.why = fake.text;
        fake.devices = 0;
    }
    if (fake.devices > DEVICES_MAX)
        fake.devices = DEVICES_MAX;
    fake.stand_in =
        look_up("fake_cuda_fail", &set_failing) && look_up("fake_cuda_calls", &count_calls) &&
        look_up("fake_cuda_all_calls", &count_all_calls) &&
        look_up("fake_cuda_of_test", &of_test) && look_up("fake_cuda_reports", &count_reports) &&
        look_up("fake_cuda_live", &count_live) && look_up("fake_cuda_delay", &delay) &&
        look_up("fake_cuda_busy", &is_busy);
}

int fake_open(const char **why)
{
    if (!fake.tried)
        open_driver();
    fake.tried = true;
    if (why)
        *why = fake.why;
    return fake.devices;
}

bool fake_is_stand_in(void)
{
    return fake.stand_in;
}

#define MUST(call)                                                                                 \
    do {                                                                                           \
        int r_ = (call);                                                                           \
        if (r_)                                                                                    \
            fail_msg("%s: CUDA error %d", #call, r_);                                              \
    } while (0)

static void enter(int device)
{
    assert_true(device >= 0 && device < fake_open(NULL));
    if (fake.stand_in)
        of_test(true);
    if (!fake.context[device])
        MUST(context_retain(&fake.context[device], device));
    MUST(context_push(fake.context[device]));
}

static void leave(void)
{
    void *context;

    MUST(context_pop(&context));
    if (fake.stand_in)
        of_test(false);
}

void *fake_new(int device, size_t bytes)
{
    uint64_t at = 0;

    enter(device);
    MUST(memory_new(&at, bytes ? bytes : 1));
    leave();
    return (void *)(uintptr_t)at;
}

void fake_drop(int device, void *data)
{
    if (!data)
        return;
    enter(device);
    MUST(memory_drop((uintptr_t)data));
    leave();
}

uint64_t fake_stream(int device)
{
    void *s = NULL;

    enter(device);
    MUST(stream_new(&s, 1));
    leave();
    return (uintptr_t)s;
}

/* Says both which buffer it is and where in it. */
static uint32_t word_of(uint32_t seed, size_t i)
{
    uint32_t x = (uint32_t)i * 2654435761u + seed * 40503u + 1;

    return x ^ x >> 15;
}

void fake_fill_host(void *data, size_t bytes, uint32_t seed)
{
    for (size_t i = 0; i < bytes; i += 4) {
        uint32_t word = word_of(seed, i / 4);

        memcpy((char *)data + i, &word, bytes - i < 4 ? bytes - i : 4);
    }
}

static bool host_is_same(const void *data, size_t bytes, uint32_t seed, size_t *ret_at)
{
    for (size_t i = 0; i < bytes; i += 4) {
        uint32_t word = word_of(seed, i / 4);

        *ret_at = i;
        if (memcmp((const char *)data + i, &word, bytes - i < 4 ? bytes - i : 4) != 0)
            return false;
    }
    return true;
}

void fake_check_host(const void *data, size_t bytes, uint32_t seed)
{
    size_t at;

    if (!host_is_same(data, bytes, seed, &at))
        fail_msg("other bytes than expected at %zu of %zu: %02x...", at, bytes,
                 ((const unsigned char *)data)[at]);
}

static void *pinned(size_t bytes)
{
    void *p = NULL;

    MUST(host_new(&p, bytes, 0));
    return p;
}

void fake_fill(int device, uint64_t stream, void *data, size_t bytes, uint32_t seed)
{
    void *from;

    if (!bytes)
        return;
    enter(device);
    from = pinned(bytes);
    fake_fill_host(from, bytes, seed);
    MUST(from_host((uintptr_t)data, from, bytes, (void *)(uintptr_t)stream));
    leave();
    assert_true(fake.n_kept < KEPT_MAX);
    fake.kept[fake.n_kept++] = from;
}

void fake_wait(int device, uint64_t stream)
{
    enter(device);
    MUST(stream_sync((void *)(uintptr_t)stream));
    leave();
}

void fake_delay(int device, uint64_t stream)
{
    uint64_t at = 0;

    enter(device);
    if (fake.stand_in) {
        delay((void *)(uintptr_t)stream, DELAY_US);
    } else {
        if (!fake.busy[device]) {
            MUST(memory_new(&at, BUSY_BYTES));
            fake.busy[device] = (void *)(uintptr_t)at;
        }
        for (unsigned i = 0; i < BUSY_TIMES; i++)
            MUST(set((uintptr_t)fake.busy[device], i, BUSY_BYTES / 4, (void *)(uintptr_t)stream));
    }
    leave();
}

static bool copy_is_same(int device, uint64_t stream, const void *data, size_t bytes, uint32_t seed,
                         size_t *ret_at, unsigned *ret_byte)
{
    bool same;
    void *to;

    if (!bytes)
        return true;
    enter(device);
    to = pinned(bytes);
    MUST(to_host(to, (uintptr_t)data, bytes, (void *)(uintptr_t)stream));
    MUST(stream_sync((void *)(uintptr_t)stream));
    same = host_is_same(to, bytes, seed, ret_at);
    *ret_byte = ((unsigned char *)to)[same ? 0 : *ret_at];
    MUST(host_drop(to));
    leave();
    return same;
}

bool fake_same(int device, uint64_t stream, const void *data, size_t bytes, uint32_t seed)
{
    unsigned byte;
    size_t at;

    return copy_is_same(device, stream, data, bytes, seed, &at, &byte);
}

void fake_check(int device, uint64_t stream, const void *data, size_t bytes, uint32_t seed)
{
    unsigned byte;
    size_t at;

    if (!copy_is_same(device, stream, data, bytes, seed, &at, &byte))
        fail_msg("cuda:%d: other bytes than expected at %zu of %zu: %02x...", device, at, bytes,
                 byte);
}

/* Its streams must have done their work. */
void fake_close(void)
{
    enter(0);
    while (fake.n_kept > 0)
        MUST(host_drop(fake.kept[--fake.n_kept]));
    leave();
    for (int i = 0; i < DEVICES_MAX; i++) {
        if (fake.busy[i])
            fake_drop(i, fake.busy[i]);
        fake.busy[i] = NULL;
    }
}

bool fake_fail(const char *call, unsigned nth)
{
    return fake.stand_in && set_failing(call, nth);
}

unsigned fake_calls(const char *call)
{
    return fake.stand_in ? count_calls(call) : 0;
}

unsigned fake_all_calls(void)
{
    return fake.stand_in ? count_all_calls() : 0;
}

int fake_reports(void)
{
    return fake.stand_in ? count_reports() : 0;
}

bool fake_busy(const void *data)
{
    return fake.stand_in && is_busy((uintptr_t)data);
}

int fake_live(enum fake_live what)
{
    return fake.stand_in ? count_live((int)what) : 0;
}
