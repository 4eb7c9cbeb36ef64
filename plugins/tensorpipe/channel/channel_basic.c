/* SPDX-License-Identifier: Apache-2.0 */
/* channel_basic.c - TensorPipe's channel "basic": each tensor is a frame on a
 * connection of the channel. */
#include "channel/channel.h"
#include "pipe/pipe.h"

static unsigned basic_send(struct pipe *p, struct send_request *request,
                           const struct tenrec_tensor_desc *t, uint64_t together, struct segment *s,
                           struct descriptor_note *note)
{
    (void)p;
    (void)together;
    (void)note;
    channel_put_frame(s, request, CONN_CHANNEL, t->data, t->bytes);
    return 1;
}

static enum part basic_receive(struct pipe *p, struct intake *t)
{
    return channel_take_frame(p, t, CONN_CHANNEL, channel_target(t), channel_incoming(t)->len);
}

const struct channel channel_basic = {
    .name = "basic",
    .connections = 1,
    .data = 1,
    .segments = channel_one_segment,
    .send = basic_send,
    .receive = basic_receive,
};
