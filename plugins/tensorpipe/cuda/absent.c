/* SPDX-License-Identifier: Apache-2.0 */
/* absent.c - what stands for the channels of devices in a build without them. */
#include "cuda/link.h"
#include "pipe/pipe.h"

#include <stdio.h>

/* Nothing here looks at what it is given. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static const char no_devices[] = "this build has no channels for devices (meson -Dcuda=disabled)";

void cuda_init(struct cuda *c, struct endpoint *ep)
{
    c->ep = ep;
}

void cuda_finish(struct cuda *c)
{
}

void cuda_stop(struct cuda *c)
{
}

tenrec_status cuda_devices(struct cuda *c, const struct tenrec_device_ops **ret, uint32_t *ret_n,
                           tenrec_error *err)
{
    return tenrec_fail(err, TENREC_EUNSUPPORTED, "%s", no_devices);
}

tenrec_status cuda_use(struct cuda *c, const struct tenrec_device *device, uint32_t n,
                       tenrec_error *err)
{
    return tenrec_fail(err, TENREC_EUNSUPPORTED, "%s", no_devices);
}

bool cuda_is_offered(const struct tp_options *o)
{
    return false;
}

bool cuda_viable(char why[], size_t cap)
{
    snprintf(why, cap, "%s", no_devices);
    return false;
}

void cuda_tell(struct cuda *c, tenrec_sink_fn *sink, void *arg)
{
}

void link_open(struct pipe *p)
{
}

void link_broken(struct pipe *p)
{
}

void link_close(struct pipe *p)
{
}

void link_arrived(struct pipe *p, struct conn *c)
{
}

void link_hello_again(struct pipe *p)
{
}

void link_run(struct pipe *p)
{
}

tenrec_status link_lend(struct pipe *p, const struct tenrec_msg *msg, tenrec_error *err)
{
    return tenrec_fail(err, TENREC_EUNSUPPORTED, "%s", no_devices);
}

void link_put_note(struct pipe *p, struct send_request *o, uint32_t tensor,
                   struct descriptor_note *note)
{
}

void link_lent(struct pipe *p)
{
}

void link_take_back(struct pipe *p)
{
}

tenrec_status link_announced(struct pipe *p, struct arriving **in, uint32_t n, uint32_t tensor,
                             struct nop_bytes note, const struct descriptor_tensor *t,
                             tenrec_error *err)
{
    return tenrec_fail(err, TENREC_EUNSUPPORTED, "%s", no_devices);
}

void link_hand_over(struct pipe *p, struct arriving *in, struct tenrec_msg *msg, int32_t type,
                    int64_t id, const tenrec_error *why)
{
}

void link_drop_arriving(struct arriving *in)
{
}
