/* SPDX-License-Identifier: Apache-2.0 */
/* cuda.c - an agent's part in channels for device memory. */
#include "cuda/device.h"
#include "cuda/link/link_parts.h"
#include "endpoint.h"

#include <inttypes.h>
#include <string.h>

#define STOP_MS 10000 /* limit for the queued work of a device at shutdown */

static const char *const channels[] = {
    [METHOD_XTH] = "cuda_xth", [METHOD_IPC] = "cuda_ipc", [METHOD_BASIC] = "cuda_basic"
};

static unsigned methods_of(const struct tp_options *o)
{
    unsigned methods = 0;

    for (size_t i = 0; driver_is_built && i < o->channels.n; i++)
        for (unsigned way = METHOD_XTH; way <= METHOD_BASIC; way++)
            if (strcmp(o->channels.v[i].s, channels[way]) == 0)
                methods |= METHOD_BIT(way);
    return methods;
}

bool cuda_is_offered(const struct tp_options *o)
{
    return methods_of(o) != 0;
}

bool cuda_viable(char why[], size_t cap)
{
    tenrec_error err;
    uint32_t n;

    if (devices_open(&n, &err) == TENREC_OK)
        return true;
    snprintf(why, cap, "%s", err.text);
    return false;
}

static void task_run(struct reactor_task *t)
{
    pieces_written(CONTAINER(t, struct cuda, task));
}

void cuda_init(struct cuda *c, struct endpoint *ep)
{
    c->ep = ep;
    c->methods = methods_of(ep->options);
    c->task.run = task_run;
    pthread_mutex_init(&c->lock, NULL);
    inflight_list_init(&c->inflight, &ep->reactor, ep->progress != PROGRESS_SLEEP && !ep->one_cpu,
                       lent_look);
    staging_init(&c->out, ep->options->cuda_staging / 2);
    staging_init(&c->in, ep->options->cuda_staging / 2);
}

void cuda_stop(struct cuda *c)
{
    if (!inflight_list_finish(&c->inflight, STOP_MS))
        endpoint_log(
            c->ep, TENREC_LOG_WARN,
            "a device has not completed its work in %d ms; the memory of those tensors is not "
            "released",
            STOP_MS);
    pieces_written(c);
}

void cuda_finish(struct cuda *c)
{
    staging_finish(&c->out);
    staging_finish(&c->in);
    pthread_mutex_destroy(&c->lock);
    if (c->holds)
        devices_let_go();
}

tenrec_status cuda_devices(struct cuda *c, const struct tenrec_device_ops **ret, uint32_t *ret_n,
                           tenrec_error *err)
{
    tenrec_status st;

    if (driver_is_built && !c->methods)
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "the option channels lists none for devices: cuda_xth, cuda_ipc, "
                           "cuda_basic");
    st = devices_open(ret_n, err);
    if (st == TENREC_OK)
        *ret = &cuda_device_ops;
    return st;
}

/* Contexts are made, and the devices held until the agent ends. */
static tenrec_status cuda_hold(struct cuda *c, const struct tenrec_device *device, uint32_t n,
                               tenrec_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        tenrec_status st;

        if (device[i].kind != TENREC_CUDA)
            continue;
        st = device_enter(device[i].index, err);
        if (st)
            return st;
        device_leave();
        if (!atomic_exchange(&c->holds, true))
            devices_hold();
    }
    return TENREC_OK;
}

tenrec_status cuda_use(struct cuda *c, const struct tenrec_device *device, uint32_t n,
                       tenrec_error *err)
{
    uint32_t n_devices = 1;
    tenrec_status st = driver_is_built ? TENREC_OK : driver_open(err);

    if (!st && n > 0) {
        st = devices_open(&n_devices, err);
        if (!st)
            st = cuda_hold(c, device, n, err);
        if (st)
            return st;
        device_memory_keep(c->ep->options->cuda_cache);
        if (!atomic_load(&c->holds))
            return TENREC_OK;
    }
    if (!st)
        atomic_store(&c->n_devices, n_devices);
    return st;
}

void cuda_tell(struct cuda *c, tenrec_sink_fn *sink, void *arg)
{
    static const char *const key[] = { "cuda.ipc_refused", "cuda.xth", "cuda.ipc", "cuda.basic" };
    char text[24];

    if (!c->methods)
        return;
    for (size_t i = 0; i < sizeof key / sizeof key[0]; i++) {
        snprintf(text, sizeof text, "%" PRIu64, (uint64_t)atomic_load(&c->sent[i]));
        sink(arg, key[i], text);
    }
}
