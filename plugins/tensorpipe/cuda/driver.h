/* SPDX-License-Identifier: Apache-2.0 */
/* driver.h - the few parts of the CUDA driver's interface that are used here.
 *
 * libcuda is loaded at the first use, so the same binary runs where there is
 * none. What its functions take is said here in our own words; where the Toolkit
 * is installed tests/tensorpipe/cuda/header_check.c holds it against the real cuda.h. A
 * `_v2` is part of the symbol's name: cuda.h hides it behind a macro.
 *
 * All functions are called with driver(), after driver_open has succeeded. Most
 * of them want a context that is current on the thread: see device.h. */
#ifndef TENSORPIPE_CUDA_DRIVER_H
#define TENSORPIPE_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenrec/error.h>

/* The driver's error codes that are distinguished here. */
enum {
    DRIVER_SUCCESS = 0,
    DRIVER_OUT_OF_MEMORY = 2,
    DRIVER_NOT_READY = 600, /* no error: what is asked about is not done yet */
};

enum {
    DRIVER_BUFFER_ID = 7, /* of a pointer: differs between two lives of an address */
    DRIVER_STREAM_NON_BLOCKING = 1,
    DRIVER_EVENT_DISABLE_TIMING = 2,
    DRIVER_EVENT_INTERPROCESS = 4,
    DRIVER_IPC_LAZY_PEER_ACCESS = 1,
    DRIVER_HOST_PORTABLE = 1, /* pinned for all contexts */
};

#ifndef DRIVER_TYPES /* header_check.c puts cuda.h's own in their place */
#define DRIVER_TYPES
typedef int driver_result;
typedef int driver_device;
typedef int driver_attribute;
typedef unsigned long long driver_address;
struct driver_uuid {
    char bytes[16];
};
struct driver_ipc_memory {
    char bytes[64];
};
struct driver_ipc_event {
    char bytes[64];
};
#define DRIVER_UUID struct driver_uuid
#define DRIVER_IPC_MEMORY struct driver_ipc_memory
#define DRIVER_IPC_EVENT struct driver_ipc_event
#define DRIVER_POINTER_ATTRIBUTE driver_attribute
#endif

/* Opaque, with the tags that cuda.h gives them. */
struct CUctx_st;
struct CUstream_st;
struct CUevent_st;

/* Name here, symbol, parameters. */
#define DRIVER_CALLS(X)                                                                            \
    X(init, cuInit, (unsigned int flags))                                                          \
    X(error_name, cuGetErrorName, (driver_result r, const char **ret))                             \
    X(error_text, cuGetErrorString, (driver_result r, const char **ret))                           \
    X(device_count, cuDeviceGetCount, (int *ret))                                                  \
    X(device_uuid, cuDeviceGetUuid, (DRIVER_UUID * ret, driver_device dev))                        \
    X(device_can_access, cuDeviceCanAccessPeer,                                                    \
      (int *ret, driver_device dev, driver_device other))                                          \
    X(context_retain, cuDevicePrimaryCtxRetain, (struct CUctx_st * *ret, driver_device dev))       \
    X(context_push, cuCtxPushCurrent_v2, (struct CUctx_st * ctx))                                  \
    X(context_pop, cuCtxPopCurrent_v2, (struct CUctx_st * *ret))                                   \
    X(memory_new, cuMemAlloc_v2, (driver_address * ret, size_t bytes))                             \
    X(memory_drop, cuMemFree_v2, (driver_address at))                                              \
    X(memory_range, cuMemGetAddressRange_v2,                                                       \
      (driver_address * ret_base, size_t * ret_bytes, driver_address at))                          \
    X(pointer_attribute, cuPointerGetAttribute,                                                    \
      (void *ret, DRIVER_POINTER_ATTRIBUTE what, driver_address at))                               \
    X(host_new, cuMemHostAlloc, (void **ret, size_t bytes, unsigned int flags))                    \
    X(host_drop, cuMemFreeHost, (void *at))                                                        \
    X(copy, cuMemcpyAsync,                                                                         \
      (driver_address to, driver_address from, size_t bytes, struct CUstream_st * s))              \
    X(stream_new, cuStreamCreate, (struct CUstream_st * *ret, unsigned int flags))                 \
    X(stream_wait, cuStreamWaitEvent,                                                              \
      (struct CUstream_st * s, struct CUevent_st * e, unsigned int flags))                         \
    X(stream_sync, cuStreamSynchronize, (struct CUstream_st * s))                                  \
    X(event_new, cuEventCreate, (struct CUevent_st * *ret, unsigned int flags))                    \
    X(event_drop, cuEventDestroy_v2, (struct CUevent_st * e))                                      \
    X(event_record, cuEventRecord, (struct CUevent_st * e, struct CUstream_st * s))                \
    X(event_query, cuEventQuery, (struct CUevent_st * e))                                          \
    X(ipc_memory, cuIpcGetMemHandle, (DRIVER_IPC_MEMORY * ret, driver_address at))                 \
    X(ipc_memory_open, cuIpcOpenMemHandle_v2,                                                      \
      (driver_address * ret, DRIVER_IPC_MEMORY handle, unsigned int flags))                        \
    X(ipc_memory_close, cuIpcCloseMemHandle, (driver_address at))                                  \
    X(ipc_event, cuIpcGetEventHandle, (DRIVER_IPC_EVENT * ret, struct CUevent_st * e))             \
    X(ipc_event_open, cuIpcOpenEventHandle, (struct CUevent_st * *ret, DRIVER_IPC_EVENT handle))

struct driver {
#define DRIVER_MEMBER(name, symbol, parameters) driver_result(*name) parameters;
    DRIVER_CALLS(DRIVER_MEMBER)
#undef DRIVER_MEMBER
};

/* False in a build that leaves it out: then no channel is offered, and driver_open says so. */
extern const bool driver_is_built;

/* Loads libcuda, looks its functions up and initialises it. Makes no context.
 *
 * errors   EUNSUPPORTED, or what the driver said: which of the three failed, and why
 * threads  one: devices_open calls it once per process
 */
tenrec_status driver_open(tenrec_error *err);

/* After driver_open succeeded. */
const struct driver *driver(void);

/* Maps the driver's result of `call` for device `index` (-1: none): OK for
 * DRIVER_SUCCESS, ENOMEM when out of memory, else EOS. `err` may be NULL. */
tenrec_status driver_check(driver_result r, const char *call, int index, tenrec_error *err);

/* driver_check of a call by the driver's name for it. */
#define DRIVER(name, index, err, ...)                                                              \
    driver_check(driver()->name(__VA_ARGS__), driver_symbol(offsetof(struct driver, name)), index, \
                 err)
const char *driver_symbol(size_t offset);

#endif
