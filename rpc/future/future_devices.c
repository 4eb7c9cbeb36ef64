/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/future/future_inside.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/tensor/device.h"
#include "rpc/future/thread_state.h"
#include "rpc/value/value.h"

void future_forget_devices(struct tenrec_future *f)
{
    streams_drop(f->streams);
    if (f->devices && atomic_fetch_sub(&f->devices->refs, 1) == 1)
        free(f->devices);
}

void future_inherit_devices(struct tenrec_future *to, const struct tenrec_future *from)
{
    atomic_fetch_add(&from->devices->refs, 1);
    to->devices = from->devices;
}

tenrec_status tenrec_future_new_on(const struct tenrec_device *device, size_t n,
                                   struct tenrec_future **ret, tenrec_error *err)
{
    struct future_devices *d;
    char text[DEVICE_TEXT_MAX];
    tenrec_status st;

    *ret = NULL;
    for (size_t i = 0; i < n; i++)
        if (device[i].kind == TENREC_CPU || device[i].index < 0)
            return tenrec_fail(err, TENREC_EINVAL,
                               "devices of a future: expected devices such as cuda:0, got %s",
                               device_text(device[i], text));
    d = memory_new(1, sizeof *d + n * sizeof d->device[0]);
    if (!d)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a future");
    atomic_init(&d->refs, 1);
    d->n = n;
    if (n)
        memcpy(d->device, device, n * sizeof *device);
    st = tenrec_future_new(ret, err);
    if (st == TENREC_OK)
        (*ret)->devices = d;
    else
        free(d);
    return st;
}

void future_run_on_streams(struct tenrec_future *f, tenrec_future_fn *fn, void *arg)
{
    struct streams *outer = thread_streams, *own = streams_new(true);

    if (own) {
        thread_streams = own;
        value_take(f->value, f->streams, NULL);
    }
    fn(f, arg);
    thread_streams = outer;
    streams_drop(own);
}

tenrec_status future_hand_over(const struct tenrec_future *f, const struct tenrec_value *v,
                               struct streams **ret, tenrec_error *err)
{
    struct tenrec_device stray;
    char text[DEVICE_TEXT_MAX], list[160];

    *ret = NULL;
    if (!stream_ops())
        return TENREC_OK;
    if (f->devices && v && value_strays(v, f->devices->device, f->devices->n, &stray))
        return tenrec_fail(err, TENREC_EDEVICE,
                           "the value has a tensor on %s, which is none of the future's devices "
                           "(%s)",
                           device_text(stray, text),
                           device_list_text(f->devices->device, f->devices->n, list, sizeof list));
    return value_hand_over(v, ret, err);
}

tenrec_status tenrec_future_order(struct tenrec_future *f, const struct tenrec_stream *s,
                                  tenrec_error *err)
{
    struct tenrec_stream ready;

    if (!tenrec_future_done(f))
        return tenrec_fail(err, TENREC_EAGAIN, "the future is not done yet");
    if (!streams_has(f->streams, s->device, &ready))
        return TENREC_OK;
    return tenrec_stream_order(&ready, s, err);
}
