/* SPDX-License-Identifier: Apache-2.0 */
/* agent_devices.c - the devices of this process, for the core and for peers. */
#include "agent/agent.h"
#include "pipe/pipe_end.h"

#include <stdlib.h>

/* On the loop thread, or before there is one. Pipes that are established say it again. */
static void agent_offer_devices(struct agent *a)
{
    struct pipe **v;

    channels_add_devices(&a->channels, atomic_load(&a->cuda.n_devices));
    if (!atomic_load(&a->cuda.holds))
        return;
    v = pipe_table_all(&a->pipes);
    for (size_t i = 0; v && v[i]; i++) {
        link_hello_again(v[i]);
        pipe_unref(v[i]);
    }
    free(v);
}

static void agent_offer_run(struct reactor_task *t)
{
    agent_offer_devices(CONTAINER(t, struct agent, offer_task));
}

void agent_devices_init(struct agent *a)
{
    a->offer_task.run = agent_offer_run;
}

tenrec_status agent_devices(struct tenrec_agent *self, const struct tenrec_device_ops **ret,
                            uint32_t *ret_n, tenrec_error *err)
{
    struct agent *a = self->impl;

    return cuda_devices(&a->cuda, ret, ret_n, err);
}

tenrec_status agent_use_devices(struct tenrec_agent *self, const struct tenrec_device *device,
                                uint32_t n, tenrec_error *err)
{
    struct agent *a = self->impl;
    tenrec_status st = cuda_use(&a->cuda, device, n, err);

    if (st || !atomic_load(&a->cuda.n_devices))
        return st;
    if (atomic_load(&a->ep.state) == AGENT_MADE)
        agent_offer_devices(a);
    else
        reactor_post(&a->ep.reactor, &a->offer_task);
    return TENREC_OK;
}
