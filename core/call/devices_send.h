/* SPDX-License-Identifier: Apache-2.0 */
/* devices_send.h - where the tensors of a message go, and on which streams they are ready.
 *
 * Without devices in its maps a worker pays nothing for a message: its `devices` is NULL, or the
 * message is not looked at. */
#ifndef TENREC_CALL_DEVICES_SEND_H
#define TENREC_CALL_DEVICES_SEND_H

#include <tenrec/agent.h>
#include <tenrec/rpc.h>

#include "tensor/stream.h"

/* Says where the tensors of a request go, and orders them after what this thread
 * has queued. errors: EDEVICE, EUNSUPPORTED, the driver's */
tenrec_status devices_request(struct tenrec_worker *w, tenrec_peer to, const char *function,
                              struct tenrec_msg *msg, tenrec_error *err);

/* The same for an answer, whose tensors are ready on `s` (NULL: by themselves). */
tenrec_status devices_answer(struct tenrec_worker *w, tenrec_peer to, struct streams *s,
                             struct tenrec_msg *msg, tenrec_error *err);

/* Returns true if the message, received or to be sent, has a tensor for a device. */
static inline bool devices_in(const struct tenrec_msg *msg)
{
    for (uint32_t i = 0; i < msg->n_tensors; i++)
        if (tenrec_msg_tensor(msg, i)->device.kind != TENREC_CPU)
            return true;
    return false;
}

/* Checks that a received tensor may be placed at `target`. errors: EDEVICE */
tenrec_status devices_check_target(struct tenrec_worker *w, struct tenrec_device target,
                                   tenrec_error *err);

/* The streams that a call with this request runs on; NULL: the worker uses no
 * devices (or there is no memory: then the default ones). */
struct streams *devices_call_streams(struct tenrec_worker *w, const struct tenrec_msg *request);

#endif
