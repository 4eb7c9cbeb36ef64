/* SPDX-License-Identifier: Apache-2.0 */
/* fake_driver.c - the driver's functions, and one queue behind all streams. */
#include "fake_driver.h"
#include "cuda/driver.h"
#include "fuzz.h"

#define QUEUE_MAX 4096
#define ALLOCATIONS_MAX 1024
#define INVALID_VALUE 1
#define NO_DRIVER 999 /* an error without a case of its own */

struct fake_driver fake_driver;

/* ---- what is queued ---- */

struct fake_copy {
    void *to;
    const void *from;
    size_t bytes;
};

static struct {
    struct fake_copy copy[QUEUE_MAX];
    size_t done, n; /* of all time; the difference is queued */
} queue;

struct CUevent_st {
    size_t behind; /* copies */
};

static bool queue_step(void)
{
    const struct fake_copy *c = &queue.copy[queue.done % QUEUE_MAX];

    if (queue.done == queue.n)
        return false;
    memcpy(c->to, c->from, c->bytes);
    queue.done++;
    return true;
}

void fake_driver_run(void)
{
    while (queue_step())
        continue;
}

static driver_result fault(void)
{
    if (!fake_driver.fails || --fake_driver.fails)
        return DRIVER_SUCCESS;
    return queue.n % 2 ? DRIVER_OUT_OF_MEMORY : NO_DRIVER;
}

/* Ends a function of the driver where the target wants that. */
#define CALL                                                                                       \
    do {                                                                                           \
        driver_result r_ = fault();                                                                \
        if (r_)                                                                                    \
            return r_;                                                                             \
    } while (0)

static driver_result copy(void *to, const void *from, size_t bytes)
{
    CALL;
    if (queue.n - queue.done == QUEUE_MAX)
        queue_step();
    queue.copy[queue.n++ % QUEUE_MAX] = (struct fake_copy){ to, from, bytes };
    return DRIVER_SUCCESS;
}

static driver_result fake_copy(driver_address to, driver_address from, size_t bytes,
                               struct CUstream_st *s)
{
    (void)s;
    return copy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
}

/* ---- memory ---- */

static struct {
    char *at;
    size_t bytes;
} allocations[ALLOCATIONS_MAX];

static driver_result allocation_new(void **ret, size_t bytes)
{
    size_t i = 0;

    CALL;
    while (i < ALLOCATIONS_MAX && allocations[i].at)
        i++;
    if (i == ALLOCATIONS_MAX)
        return DRIVER_OUT_OF_MEMORY;
    *ret = allocations[i].at = calloc(1, bytes);
    fuzz_expect(*ret != NULL);
    allocations[i].bytes = bytes;
    fake_driver.live++;
    return DRIVER_SUCCESS;
}

static driver_result allocation_drop(const void *at)
{
    for (size_t i = 0; i < ALLOCATIONS_MAX; i++)
        if (at && allocations[i].at == at) {
            free(allocations[i].at);
            allocations[i].at = NULL;
            fake_driver.live--;
            return DRIVER_SUCCESS;
        }
    abort(); /* misuse */
}

static driver_result fake_memory_new(driver_address *ret, size_t bytes)
{
    void *at = NULL;
    driver_result r = allocation_new(&at, bytes);

    *ret = (uintptr_t)at;
    return r;
}

/* The driver's waits for what is queued. */
static driver_result fake_memory_drop(driver_address at)
{
    fake_driver_run();
    return allocation_drop((void *)(uintptr_t)at);
}

static driver_result fake_host_new(void **ret, size_t bytes, unsigned flags)
{
    (void)flags;
    return allocation_new(ret, bytes);
}

static driver_result fake_host_drop(void *at)
{
    return allocation_drop(at);
}

static driver_result fake_memory_range(driver_address *ret_base, size_t *ret_bytes,
                                       driver_address at)
{
    CALL;
    for (size_t i = 0; i < ALLOCATIONS_MAX; i++) {
        const uintptr_t base = (uintptr_t)allocations[i].at;

        if (base && at >= base && at - base < allocations[i].bytes) {
            *ret_base = base;
            *ret_bytes = allocations[i].bytes;
            return DRIVER_SUCCESS;
        }
    }
    return INVALID_VALUE;
}

static driver_result fake_pointer_attribute(void *ret, driver_attribute what, driver_address at)
{
    const uint64_t id = at;

    CALL;
    if (what != DRIVER_BUFFER_ID)
        return INVALID_VALUE;
    memcpy(ret, &id, sizeof id);
    return DRIVER_SUCCESS;
}

static driver_result fake_ipc_memory(struct driver_ipc_memory *ret, driver_address at)
{
    CALL;
    *ret = (struct driver_ipc_memory){ { 0 } };
    memcpy(ret->bytes + 1, &at, sizeof at);
    return DRIVER_SUCCESS;
}

/* A real driver refuses all but handles that it made: of those the peer has a few. */
static driver_result fake_ipc_memory_open(driver_address *ret, struct driver_ipc_memory handle,
                                          unsigned flags)
{
    (void)flags;
    if ((unsigned char)handle.bytes[0] >= FAKE_HANDLES)
        return INVALID_VALUE;
    return fake_memory_new(ret, FAKE_FOREIGN);
}

static driver_result fake_ipc_memory_close(driver_address at)
{
    return allocation_drop((void *)(uintptr_t)at);
}

/* ---- events and streams ---- */

static driver_result fake_event_new(struct CUevent_st **ret, unsigned flags)
{
    (void)flags;
    CALL;
    *ret = calloc(1, sizeof **ret);
    fuzz_expect(*ret != NULL);
    fake_driver.live++;
    return DRIVER_SUCCESS;
}

static driver_result fake_event_drop(struct CUevent_st *e)
{
    free(e);
    fake_driver.live--;
    return DRIVER_SUCCESS;
}

static driver_result fake_event_record(struct CUevent_st *e, struct CUstream_st *s)
{
    (void)s;
    CALL;
    e->behind = queue.n;
    return DRIVER_SUCCESS;
}

static driver_result fake_event_query(struct CUevent_st *e)
{
    CALL;
    if (queue.done < e->behind)
        queue_step();
    return queue.done < e->behind ? DRIVER_NOT_READY : DRIVER_SUCCESS;
}

static driver_result fake_ipc_event(struct driver_ipc_event *ret, struct CUevent_st *e)
{
    CALL;
    *ret = (struct driver_ipc_event){ { 0 } };
    memcpy(ret->bytes + 1, &e, sizeof e);
    return DRIVER_SUCCESS;
}

static driver_result fake_ipc_event_open(struct CUevent_st **ret, struct driver_ipc_event handle)
{
    if ((unsigned char)handle.bytes[0] >= FAKE_HANDLES)
        return INVALID_VALUE;
    return fake_event_new(ret, 0);
}

/* All streams are one. */
static driver_result fake_stream_new(struct CUstream_st **ret, unsigned flags)
{
    (void)flags;
    CALL;
    *ret = (void *)&queue;
    return DRIVER_SUCCESS;
}

static driver_result fake_stream_wait(struct CUstream_st *s, struct CUevent_st *e, unsigned flags)
{
    (void)s, (void)flags;
    CALL;
    fuzz_touch(e, sizeof *e);
    return DRIVER_SUCCESS;
}

static driver_result fake_stream_sync(struct CUstream_st *s)
{
    (void)s;
    fake_driver_run();
    return DRIVER_SUCCESS;
}

/* ---- devices ---- */

static driver_result fake_device_count(int *ret)
{
    *ret = FAKE_DEVICES;
    return DRIVER_SUCCESS;
}

static driver_result fake_device_uuid(struct driver_uuid *ret, driver_device device)
{
    memset(ret->bytes, 1 + device, sizeof ret->bytes);
    return DRIVER_SUCCESS;
}

static driver_result fake_device_can_access(int *ret, driver_device device, driver_device other)
{
    (void)device, (void)other;
    *ret = 1;
    return DRIVER_SUCCESS;
}

static driver_result fake_context_retain(struct CUctx_st **ret, driver_device device)
{
    (void)device;
    *ret = (void *)&queue;
    return DRIVER_SUCCESS;
}

static driver_result fake_context_push(struct CUctx_st *c)
{
    (void)c;
    return DRIVER_SUCCESS;
}

static driver_result fake_context_pop(struct CUctx_st **ret)
{
    *ret = (void *)&queue;
    return DRIVER_SUCCESS;
}

/* ---- instead of cuda/driver.c ---- */

static const struct driver calls = {
    .device_count = fake_device_count,
    .device_uuid = fake_device_uuid,
    .device_can_access = fake_device_can_access,
    .context_retain = fake_context_retain,
    .context_push = fake_context_push,
    .context_pop = fake_context_pop,
    .memory_new = fake_memory_new,
    .memory_drop = fake_memory_drop,
    .memory_range = fake_memory_range,
    .pointer_attribute = fake_pointer_attribute,
    .host_new = fake_host_new,
    .host_drop = fake_host_drop,
    .copy = fake_copy,
    .stream_new = fake_stream_new,
    .stream_wait = fake_stream_wait,
    .stream_sync = fake_stream_sync,
    .event_new = fake_event_new,
    .event_drop = fake_event_drop,
    .event_record = fake_event_record,
    .event_query = fake_event_query,
    .ipc_memory = fake_ipc_memory,
    .ipc_memory_open = fake_ipc_memory_open,
    .ipc_memory_close = fake_ipc_memory_close,
    .ipc_event = fake_ipc_event,
    .ipc_event_open = fake_ipc_event_open,
};

tenrec_status __wrap_driver_open(tenrec_error *err);
const struct driver *__wrap_driver(void);
tenrec_status __wrap_driver_check(driver_result r, const char *call, int index, tenrec_error *err);

tenrec_status __wrap_driver_open(tenrec_error *err)
{
    (void)err;
    return TENREC_OK;
}

const struct driver *__wrap_driver(void)
{
    return &calls;
}

tenrec_status __wrap_driver_check(driver_result r, const char *call, int index, tenrec_error *err)
{
    if (r == DRIVER_SUCCESS)
        return TENREC_OK;
    return tenrec_fail(err, r == DRIVER_OUT_OF_MEMORY ? TENREC_ENOMEM : TENREC_EOS,
                       "%s for cuda:%d: error %d", call, index, r);
}
