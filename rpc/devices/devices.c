/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/devices/devices.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/config/config.h"
#include "core/tensor/device.h"
#include "rpc/call/calls.h"

/* ---- settings of the program ------------------------------------------------------- */

struct devices *devices_make(void)
{
    struct devices *d = memory_new(1, sizeof *d);

    if (!d)
        return NULL;
    d->mine.count = DEVICE_COUNT_UNKNOWN;
    pthread_rwlock_init(&d->lock, NULL);
    return d;
}

void devices_free(struct devices *d)
{
    if (!d)
        return;
    devices_forget(d);
    device_row_free(&d->mine);
    pthread_rwlock_destroy(&d->lock);
    free(d);
}

tenrec_status devices_new(const struct config_settings *s, struct devices **ret, tenrec_error *err)
{
    struct devices *d = NULL;
    tenrec_status st = TENREC_OK;

    *ret = NULL;
    if (s->n_devices == 0 && s->n_device_maps == 0)
        return TENREC_OK;
    d = devices_make();
    if (!d)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the worker's devices");
    if (s->n_devices > 0)
        st = device_row_set_devices(&d->mine, s->device, s->n_devices, err);
    for (size_t i = 0; i < s->n_device_maps && st == TENREC_OK; i++)
        st = device_row_add(&d->mine, s->device_map[i].worker, s->device_map[i].pair,
                            s->device_map[i].n, err);
    if (st == TENREC_OK)
        *ret = d;
    else
        devices_free(d);
    return st;
}

/* Returns the worker's devices for a change. The caller keeps the worker from starting. */
static tenrec_status devices_change(struct tenrec_worker *w, struct devices **ret,
                                    tenrec_error *err)
{
    const uint32_t state = atomic_load(&w->state);

    if (state != WORKER_NEW && state != WORKER_DOWN)
        return tenrec_fail(err, TENREC_EBUSY,
                           "devices are agreed upon by tenrec_init_rpc: set them before it");
    if (!w->calls->devices && !(w->calls->devices = devices_make()))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the worker's devices");
    *ret = w->calls->devices;
    return TENREC_OK;
}

static tenrec_status check_device(struct tenrec_device d, tenrec_error *err)
{
    if (d.kind != TENREC_CPU && d.kind != TENREC_CUDA)
        return tenrec_fail(err, TENREC_EINVAL, "device kind %d: expected TENREC_CPU or TENREC_CUDA",
                           (int)d.kind);
    if (d.index < 0 || (d.kind == TENREC_CPU && d.index > 0))
        return tenrec_fail(err, TENREC_EINVAL, "device index %d: %s", (int)d.index,
                           d.kind == TENREC_CPU ? "the host has 0 only" : "it may not be negative");
    return TENREC_OK;
}

tenrec_status tenrec_worker_set_device_map(struct tenrec_worker *w, const char *to,
                                           const struct tenrec_device_pair *pair, size_t n,
                                           tenrec_error *err)
{
    struct devices *d = NULL;
    tenrec_status st = TENREC_OK;

    if (!to || (!pair && n > 0))
        return tenrec_fail(err, TENREC_EINVAL, "no %s is given", to ? "device pairs" : "worker");
    for (size_t i = 0; i < n && st == TENREC_OK; i++) {
        st = check_device(pair[i].from, err);
        if (st == TENREC_OK)
            st = check_device(pair[i].to, err);
    }
    if (st == TENREC_OK)
        st = devices_change(w, &d, err);
    return st == TENREC_OK && n > 0 ? device_row_add(&d->mine, to, pair, n, err) : st;
}

tenrec_status tenrec_worker_set_devices(struct tenrec_worker *w, const struct tenrec_device *device,
                                        size_t n, tenrec_error *err)
{
    struct devices *d = NULL;
    tenrec_status st = TENREC_OK;

    if (!device && n > 0)
        return tenrec_fail(err, TENREC_EINVAL, "no devices are given");
    for (size_t i = 0; i < n && st == TENREC_OK; i++)
        st = check_device(device[i], err);
    if (st == TENREC_OK)
        st = devices_change(w, &d, err);
    return st == TENREC_OK ? device_row_set_devices(&d->mine, device, n, err) : st;
}

tenrec_status tenrec_worker_get_devices(const struct tenrec_worker *w, struct tenrec_device *ret,
                                        size_t room, size_t *ret_n, tenrec_error *err)
{
    struct devices *d = w->calls->devices;

    *ret_n = 0;
    if (!tenrec_worker_running(w))
        return tenrec_fail(err, TENREC_ESHUTDOWN, "the worker is not running");
    if (!d)
        return TENREC_OK;
    pthread_rwlock_rdlock(&d->lock);
    *ret_n = d->n_used;
    for (size_t i = 0; i < d->n_used && i < room; i++)
        ret[i] = d->used[i];
    pthread_rwlock_unlock(&d->lock);
    return TENREC_OK;
}
