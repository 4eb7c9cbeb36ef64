/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/value/value.h"

#include "core/tensor/device.h"

typedef tenrec_status each_fn(void *arg, struct tenrec_tensor *t, tenrec_error *err);

/* Calls fn for each tensor of `v` that is on a device, until one fails. */
/* Skips memory that is NULL: the codec and copies refuse it. */
static tenrec_status stream_value_each(const struct tenrec_value *v, each_fn *fn, void *arg,
                                       tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    switch (v->type) {
    case TENREC_VALUE_TENSOR:
        if (v->u.tensor && tenrec_tensor_desc(v->u.tensor)->device.kind != TENREC_CPU)
            st = fn(arg, v->u.tensor, err);
        break;
    case TENREC_VALUE_ARRAY:
        for (uint64_t i = 0; v->u.array && i < v->n && st == TENREC_OK; i++)
            st = stream_value_each(&v->u.array[i], fn, arg, err);
        break;
    case TENREC_VALUE_MAP:
        for (uint64_t i = 0; v->u.map && i < v->n && st == TENREC_OK; i++)
            st = stream_value_each(&v->u.map[i].value, fn, arg, err);
        break;
    default:
        break;
    }
    return st;
}

static tenrec_status find_one(void *arg, struct tenrec_tensor *t, tenrec_error *err)
{
    (void)arg, (void)t, (void)err;
    return TENREC_EEXIST; /* found: stops the walk */
}

bool value_on_devices(const struct tenrec_value *v)
{
    return stream_ops() && v && stream_value_each(v, find_one, NULL, NULL) != TENREC_OK;
}

static tenrec_status add_own(void *arg, struct tenrec_tensor *t, tenrec_error *err)
{
    const struct tenrec_tensor_desc *d = tenrec_tensor_desc(t);
    struct tenrec_stream s = { d->device, d->stream }, known;

    if (!streams_has(arg, d->device, &known))
        return streams_put(arg, &s, err);
    return tenrec_stream_order(&s, &known, err);
}

struct streams *value_streams(const struct tenrec_value *v)
{
    struct streams *s;

    if (!value_on_devices(v) || !(s = streams_new(false)))
        return NULL;
    if (stream_value_each(v, add_own, s, NULL) == TENREC_OK)
        return s;
    streams_drop(s);
    return NULL;
}

/* Makes the set's stream for the device of `t`: an existing stream, or a new stream that waits for
 * this thread's current one, wait for the tensor's own stream. */
static tenrec_status add_after_current(void *arg, struct tenrec_tensor *t, tenrec_error *err)
{
    const struct tenrec_device device = tenrec_tensor_desc(t)->device;
    struct tenrec_stream now, s;
    tenrec_status st = TENREC_OK;

    if (!streams_has(arg, device, &s)) {
        now = (struct tenrec_stream){ device, tenrec_stream_get_current(device) };
        st = stream_after(&now, &s, err);
        if (st == TENREC_OK)
            st = streams_put(arg, &s, err);
    }
    if (st == TENREC_OK)
        st = device_tensor_order(t, &s, err);
    if (st == TENREC_OK)
        tenrec_tensor_record_stream(t, &s);
    return st;
}

tenrec_status value_hand_over(const struct tenrec_value *v, struct streams **ret, tenrec_error *err)
{
    struct streams *s;
    tenrec_status st;

    *ret = NULL;
    if (!value_on_devices(v))
        return TENREC_OK;
    s = streams_new(false);
    if (!s)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the streams of a value");
    st = stream_value_each(v, add_after_current, s, err);
    if (st == TENREC_OK)
        *ret = s;
    else
        streams_drop(s);
    return st;
}

static tenrec_status order_and_use(void *arg, struct tenrec_tensor *t, tenrec_error *err)
{
    const struct tenrec_device device = tenrec_tensor_desc(t)->device;
    const struct tenrec_stream now = { device, tenrec_stream_get_current(device) };
    struct tenrec_stream ready;
    tenrec_status st = TENREC_OK;

    if (streams_has(arg, device, &ready))
        st = tenrec_stream_order(&ready, &now, err);
    if (st == TENREC_OK)
        tenrec_tensor_record_stream(t, &now);
    return st;
}

tenrec_status value_take(const struct tenrec_value *v, struct streams *ready, tenrec_error *err)
{
    return v ? stream_value_each(v, order_and_use, ready, err) : TENREC_OK;
}

static tenrec_status use_on(void *arg, struct tenrec_tensor *t, tenrec_error *err)
{
    struct tenrec_stream s;
    tenrec_status st = streams_get(arg, tenrec_tensor_desc(t)->device, &s, err);

    if (st == TENREC_OK)
        tenrec_tensor_record_stream(t, &s);
    return st;
}

tenrec_status value_take_on(const struct tenrec_value *v, struct streams *ready, struct streams *s,
                            tenrec_error *err)
{
    tenrec_status st = streams_order(ready, s, err);

    if (st != TENREC_OK || !ready)
        return st;
    return stream_value_each(v, use_on, s ? s : thread_streams, err);
}

static tenrec_status order_set(void *arg, struct tenrec_tensor *t, tenrec_error *err)
{
    const struct tenrec_device device = tenrec_tensor_desc(t)->device;
    const struct tenrec_stream now = { device, tenrec_stream_get_current(device) };
    struct tenrec_stream s;
    tenrec_status st = streams_get(arg, device, &s, err);

    if (st == TENREC_OK)
        st = tenrec_stream_order(&now, &s, err);
    if (st == TENREC_OK)
        st = device_tensor_order(t, &s, err);
    if (st == TENREC_OK)
        tenrec_tensor_record_stream(t, &s);
    return st;
}

tenrec_status value_order(const struct tenrec_value *v, struct streams *s, tenrec_error *err)
{
    return stream_value_each(v, order_set, s, err);
}

struct streams *streams_fork(struct streams *ready)
{
    struct streams *s = streams_new(true);

    if (s && streams_order(ready, s, NULL) == TENREC_OK)
        return s;
    streams_drop(s);
    return NULL;
}

struct strays {
    const struct tenrec_device *device;
    size_t n;
    struct tenrec_device found;
};

static tenrec_status find_stray(void *arg, struct tenrec_tensor *t, tenrec_error *err)
{
    struct strays *s = arg;

    (void)err;
    s->found = tenrec_tensor_desc(t)->device;
    return device_listed(s->device, s->n, s->found) ? TENREC_OK : TENREC_EEXIST;
}

bool value_strays(const struct tenrec_value *v, const struct tenrec_device *device, size_t n,
                  struct tenrec_device *ret)
{
    struct strays s = { .device = device, .n = n };

    if (stream_value_each(v, find_stray, &s, NULL) == TENREC_OK)
        return false;
    *ret = s.found;
    return true;
}
