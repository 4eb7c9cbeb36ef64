/* SPDX-License-Identifier: Apache-2.0 */
/* cuda.c - an agent's part in channels for device memory. */
#include "cuda/link_parts.h"
#include "cuda/memory.h"
#include "cuda/ops.h"
#include "endpoint.h"

#include <inttypes.h>
#include <string.h>

#define STOP_MS 10000 /* limit for the queued work of a device at shutdown */

static const struct {
    const char *name;
    unsigned bit;
} channels[] = {
    { "cuda_xth", METHOD_BIT(METHOD_XTH) },
    { "cuda_ipc", METHOD_BIT(METHOD_IPC) },
    { "cuda_basic", METHOD_BIT(METHOD_BASIC) },
};

static unsigned methods_of(const struct tp_options *o)
{
    unsigned methods = 0;

    for (size_t i = 0; i < o->channels.n; i++)
        for (size_t k = 0; k < sizeof channels / sizeof channels[0]; k++)
            if (strcmp(o->channels.v[i].s, channels[k].name) == 0)
                methods |= channels[k].bit;
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
    inflight_list_init(&c->inflight, &ep->reactor, lent_look);
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

    if (!c->methods)
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
    tenrec_status st = TENREC_OK;

    if (n > 0) {
        st = devices_open(&n_devices, err);
        if (!st)
            st = cuda_hold(c, device, n, err);
        if (st)
            return st;
        device_memory_keep(c->ep->options->cuda_cache);
        if (!atomic_load(&c->holds))
            return TENREC_OK;
    }
    atomic_store(&c->n_devices, n_devices);
    return TENREC_OK;
}

void cuda_tell(struct cuda *c, tenrec_sink_fn *sink, void *arg)
{
    const struct {
        const char *key;
        uint64_t n;
    } count[] = {
        { "cuda.xth", atomic_load(&c->xth) },
        { "cuda.ipc", atomic_load(&c->ipc) },
        { "cuda.basic", atomic_load(&c->basic) },
        { "cuda.ipc_refused", atomic_load(&c->refused) },
    };
    char text[24];

    if (!c->methods)
        return;
    for (size_t i = 0; i < sizeof count / sizeof count[0]; i++) {
        snprintf(text, sizeof text, "%" PRIu64, count[i].n);
        sink(arg, count[i].key, text);
    }
}
