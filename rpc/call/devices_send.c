/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/call/calls.h"

#include "core/tensor/device.h"
#include "core/tensor/tensor.h"

/* The error names the map that is missing, and where to write it. */
static tenrec_status fail_unmapped(const struct tenrec_worker *w, tenrec_peer to, bool answer,
                                   uint32_t i, struct tenrec_device d, tenrec_error *err)
{
    const char *name = peers_name(&w->peers, to);
    char device[DEVICE_TEXT_MAX];

    device_text(d, device);
    if (to < 0)
        return tenrec_fail(err, TENREC_EDEVICE,
                           "tensor %u is on %s: a caller outside the group has no device map, so "
                           "copy it to the host (tenrec_tensor_to)",
                           i, device);
    if (answer)
        return tenrec_fail(
            err, TENREC_EDEVICE,
            "tensor %u of the answer is on %s, and the device maps of '%.40s' have no entry "
            "for it: write worker.device_maps: {%.40s: {cuda:N: %s}} "
            "in the configuration of '%.40s', or answer with a copy on the host",
            i, device, name, w->self.name, device, name);
    return tenrec_fail(
        err, TENREC_EDEVICE,
        "tensor %u is on %s, and no device map to '%.40s' has an entry for it: "
        "write worker.device_maps: {%.40s: {%s: cuda:N}} in the configuration, call "
        "tenrec_worker_set_device_map before tenrec_init_rpc, or send a copy on the host",
        i, device, name, name, device);
}

/* Returns true if there are tensors on devices, or maps to devices. Rarely so, also in dynamic
 * groups, where each worker has its struct devices. */
static bool devices_send_concerns(const struct tenrec_worker *w, const struct tenrec_msg *msg)
{
    if (msg->n_tensors == 0)
        return false;
    return (w->calls->devices &&
            atomic_load_explicit(&w->calls->devices->maps, memory_order_relaxed)) ||
           devices_in(msg);
}

/* Sets the target of each tensor. */
static tenrec_status set_targets(struct tenrec_worker *w, tenrec_peer to, bool answer,
                                 struct tenrec_msg *msg, tenrec_error *err)
{
    static const struct tenrec_device host = { TENREC_CPU, 0 };
    struct devices *d = w->calls->devices;
    const struct device_map *map = NULL;
    tenrec_status st = TENREC_OK;

    if (d)
        pthread_rwlock_rdlock(&d->lock);
    if (d && to >= 0 && (size_t)to < d->n_ways)
        map = answer ? &d->way[to].answer : &d->way[to].request;
    for (uint32_t i = 0; i < msg->n_tensors && st == TENREC_OK; i++) {
        struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);

        if (device_map_find(map, t->device, &t->target))
            continue;
        t->target = host;
        if (t->device.kind != TENREC_CPU)
            st = fail_unmapped(w, to, answer, i, t->device, err);
    }
    if (d)
        pthread_rwlock_unlock(&d->lock);
    return st;
}

/* Sets the stream of tensor `i`, ordered after the tensor's own. */
static tenrec_status set_stream(struct tenrec_msg *msg, uint32_t i, const struct tenrec_stream *s,
                                tenrec_error *err)
{
    struct tenrec_tensor *owner = rpc_message_owner(msg, i);
    tenrec_status st = owner ? device_tensor_order(owner, s, err) : TENREC_OK;

    if (st == TENREC_OK && owner)
        tenrec_tensor_record_stream(owner, s);
    tenrec_msg_tensor(msg, i)->stream = s->stream;
    return st;
}

/* Sets a stream of the pool for each device, ordered after this thread's. */
static tenrec_status order_after_current(struct tenrec_msg *msg, tenrec_error *err)
{
    struct streams *own = streams_new(false);
    tenrec_status st =
        own ? TENREC_OK : tenrec_fail(err, TENREC_ENOMEM, "no memory for a message's streams");

    for (uint32_t i = 0; i < msg->n_tensors && st == TENREC_OK; i++) {
        const struct tenrec_device device = tenrec_msg_tensor(msg, i)->device;
        struct tenrec_stream now, s;

        if (device.kind == TENREC_CPU)
            continue;
        if (!streams_has(own, device, &s)) {
            now = (struct tenrec_stream){ device, tenrec_stream_get_current(device) };
            st = stream_after(&now, &s, err);
            if (st == TENREC_OK)
                st = streams_put(own, &s, err);
        }
        if (st == TENREC_OK)
            st = set_stream(msg, i, &s, err);
    }
    streams_drop(own);
    return st;
}

tenrec_status devices_request(struct tenrec_worker *w, tenrec_peer to, const char *function,
                              struct tenrec_msg *msg, tenrec_error *err)
{
    tenrec_status st;

    if (!devices_send_concerns(w, msg))
        return TENREC_OK;
    st = set_targets(w, to, false, msg, err);
    if (st == TENREC_OK && devices_in(msg))
        st = order_after_current(msg, err);
    if (st != TENREC_OK)
        tenrec_error_prefix(err, "'%s'", function);
    return st;
}

/* A function may use any device, but the tensors of its answer must be on devices of the worker. */
static tenrec_status check_used(struct tenrec_worker *w, const struct tenrec_msg *msg,
                                tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (uint32_t i = 0; i < msg->n_tensors && st == TENREC_OK; i++)
        if (tenrec_msg_tensor(msg, i)->device.kind != TENREC_CPU)
            st = devices_check_target(w, tenrec_msg_tensor(msg, i)->device, err);
    return st;
}

tenrec_status devices_answer(struct tenrec_worker *w, tenrec_peer to, struct streams *s,
                             struct tenrec_msg *msg, tenrec_error *err)
{
    tenrec_status st;

    if (!devices_send_concerns(w, msg))
        return TENREC_OK;
    st = set_targets(w, to, true, msg, err);
    if (st == TENREC_OK && devices_in(msg))
        st = check_used(w, msg, err);
    for (uint32_t i = 0; i < msg->n_tensors && st == TENREC_OK; i++) {
        const struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);
        struct tenrec_stream on = { t->device, t->stream };

        if (t->device.kind == TENREC_CPU)
            continue;
        if (s)
            st = streams_get(s, t->device, &on, err);
        if (st == TENREC_OK)
            st = set_stream(msg, i, &on, err);
    }
    return st;
}

tenrec_status devices_check_target(struct tenrec_worker *w, struct tenrec_device target,
                                   tenrec_error *err)
{
    struct devices *d = w->calls->devices;
    char text[DEVICE_TEXT_MAX];
    bool found = false;

    if (d)
        pthread_rwlock_rdlock(&d->lock);
    for (size_t i = 0; d && i < d->n_used && !found; i++)
        found = device_equal(d->used[i], target);
    if (d)
        pthread_rwlock_unlock(&d->lock);
    if (found)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EDEVICE,
                       "%s is not a device that '%s' uses: name it in its worker.devices, "
                       "or in a device map",
                       device_text(target, text), w->self.name);
}

struct streams *devices_call_streams(struct tenrec_worker *w, const struct tenrec_msg *request)
{
    struct streams *s;

    if (!w->calls->devices)
        return NULL;
    if (atomic_load_explicit(&w->calls->devices->n_used, memory_order_relaxed) == 0 ||
        !(s = streams_new(true)))
        return NULL;
    for (uint32_t i = 0; i < request->n_tensors; i++) {
        const struct tenrec_tensor_desc *t = tenrec_msg_tensor(request, i);

        if (t->device.kind != TENREC_CPU)
            streams_put(s, &(struct tenrec_stream){ t->device, t->stream }, NULL);
    }
    return s;
}
