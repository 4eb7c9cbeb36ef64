/* SPDX-License-Identifier: Apache-2.0 */
/* devices.c - devices, their primary contexts, and what errors are called. */
#include "stand_in.h"

#include <stdio.h>
#include <string.h>

EXPORT int cuInit(unsigned flags);
EXPORT int cuDriverGetVersion(int *ret);
EXPORT int cuGetErrorName(int r, const char **ret);
EXPORT int cuGetErrorString(int r, const char **ret);
EXPORT int cuDeviceGetCount(int *ret);
EXPORT int cuDeviceGet(int *ret, int ordinal);
EXPORT int cuDeviceGetName(char *ret, int cap, int dev);
EXPORT int cuDeviceGetUuid(char *ret, int dev);
EXPORT int cuDeviceGetAttribute(int *ret, int what, int dev);
EXPORT int cuDeviceCanAccessPeer(int *ret, int dev, int other);
EXPORT int cuDevicePrimaryCtxRetain(struct CUctx_st **ret, int dev);
EXPORT int cuCtxPushCurrent_v2(struct CUctx_st *ctx);
EXPORT int cuCtxPopCurrent_v2(struct CUctx_st **ret);

#define STACK 16
#define UNIFIED_ADDRESSING 41

static atomic_bool initialised;
static struct CUctx_st contexts[DEVICES_MAX];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local struct CUctx_st *stack[STACK];
static _Thread_local int depth;

static int n_devices(void)
{
    long n = setting("FAKE_CUDA_DEVICES", 2);

    return n > DEVICES_MAX ? DEVICES_MAX : (int)n;
}

static int known(int dev)
{
    if (!atomic_load(&initialised))
        return NOT_INITIALIZED;
    return dev >= 0 && dev < n_devices() ? SUCCESS : INVALID_DEVICE;
}

static void init_contexts(void)
{
    for (int i = 0; i < DEVICES_MAX; i++) {
        contexts[i].device = i;
        pthread_mutex_init(&contexts[i].lock, NULL);
    }
}

struct CUctx_st *context(void)
{
    return depth ? stack[depth - 1] : NULL;
}

int cuInit(unsigned flags)
{
    CALL;
    if (flags)
        return INVALID_VALUE;
    if (n_devices() < 1)
        return NO_DEVICE;
    pthread_once(&once, init_contexts);
    atomic_store(&initialised, true);
    return SUCCESS;
}

int cuDriverGetVersion(int *ret)
{
    CALL;
    *ret = 12000;
    return SUCCESS;
}

int cuGetErrorName(int r, const char **ret)
{
    switch (r) {
    case OUT_OF_MEMORY:
        *ret = "CUDA_ERROR_OUT_OF_MEMORY";
        return SUCCESS;
    case NO_DEVICE:
        *ret = "CUDA_ERROR_NO_DEVICE";
        return SUCCESS;
    case UNKNOWN:
        *ret = "CUDA_ERROR_UNKNOWN";
        return SUCCESS;
    default:
        *ret = "CUDA_ERROR_OF_THE_STAND_IN";
        return SUCCESS;
    }
}

int cuGetErrorString(int r, const char **ret)
{
    *ret = r == OUT_OF_MEMORY ? "out of memory" : r == NO_DEVICE ? "no device" : "unknown error";
    return SUCCESS;
}

int cuDeviceGetCount(int *ret)
{
    CALL;
    if (!atomic_load(&initialised))
        return NOT_INITIALIZED;
    *ret = n_devices();
    return SUCCESS;
}

int cuDeviceGet(int *ret, int ordinal)
{
    CALL;
    *ret = ordinal;
    return known(ordinal);
}

int cuDeviceGetName(char *ret, int cap, int dev)
{
    CALL;
    snprintf(ret, (size_t)cap, "stand-in %d", dev);
    return known(dev);
}

int cuDeviceGetUuid(char *ret, int dev)
{
    CALL;
    memset(ret, 0, 16);
    snprintf(ret, 16, "fake-device-%d", dev);
    return known(dev);
}

int cuDeviceGetAttribute(int *ret, int what, int dev)
{
    CALL;
    *ret = what == UNIFIED_ADDRESSING;
    return known(dev);
}

int cuDeviceCanAccessPeer(int *ret, int dev, int other)
{
    CALL;
    *ret = dev != other && setting("FAKE_CUDA_PEERS", 1) != 0;
    return known(dev) ? known(dev) : known(other);
}

int cuDevicePrimaryCtxRetain(struct CUctx_st **ret, int dev)
{
    CALL;
    if (known(dev))
        return known(dev);
    atomic_fetch_add(&contexts[dev].retained, 1);
    *ret = &contexts[dev];
    return SUCCESS;
}

int cuCtxPushCurrent_v2(struct CUctx_st *ctx)
{
    CALL;
    if (!ctx || depth == STACK || !atomic_load(&ctx->retained)) {
        misuse("cuCtxPushCurrent of a context that nobody retains, or of too many");
        return INVALID_CONTEXT;
    }
    stack[depth++] = ctx;
    return SUCCESS;
}

/* Never fails on purpose: no caller could recover. */
int cuCtxPopCurrent_v2(struct CUctx_st **ret)
{
    CALL;
    if (depth == 0) {
        misuse("cuCtxPopCurrent without a context");
        return INVALID_CONTEXT;
    }
    depth--;
    if (ret)
        *ret = stack[depth];
    return SUCCESS;
}
