/* SPDX-License-Identifier: Apache-2.0 */
#include "pipe/pipe_services.h"

#include "pipe/pipe_conns.h"
#include "pipe/pipe_end.h"
#include "pipe/pipe_queue.h"
#include "pipe/pipe_read.h"
#include "pipe/pipe_send.h"

const struct pipe_services pipe_services = {
    .ref = pipe_ref,
    .unref = pipe_unref,
    .post = pipe_post,
    .failf = pipe_failf,
    .send_object = pipe_send_object,
    .send_frame = pipe_send_frame,
    .part_done = pipe_part_done,
    .tensors_taken = pipe_tensors_taken,
    .tensor_refused = pipe_tensor_refused,
    .lend_side = pipe_lend_side,
    .send_device_message = pipe_send_device_message,
    .deliver = message_deliver,
};
