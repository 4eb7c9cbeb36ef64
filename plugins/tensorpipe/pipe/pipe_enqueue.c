/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_enqueue.c - messages with tensors, or with large payloads, on their way into the queue. */
#include "cuda/link/link.h"
#include "pipe/pipe.h"
#include "pipe/pipe_send.h"

#include <stdlib.h>

#define MESSAGE_HELD 1024 /* bytes of a message beside its payload */

uint64_t send_request_cost(const struct tenrec_msg *msg)
{
    uint64_t n = msg->payload_len + MESSAGE_HELD;

    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        const struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);

        n += (t->same_storage ? 0 : t->bytes) + 2 * sizeof *t;
    }
    return n;
}

/* Tensor `i` says that it has the storage of an earlier one: true or EINVAL. Where the
 * peer could not read that the storage is sent again: torch takes the dtype of the first
 * tensor for all, and for memory of devices there is no such form. */
static tenrec_status message_check_sharing(const struct pipe *p, const struct tenrec_msg *msg,
                                           uint32_t i, tenrec_error *err)
{
    struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);
    const struct tenrec_tensor_desc *first = NULL;

    if (t->same_storage <= i)
        first = tenrec_msg_tensor(msg, (uint32_t)t->same_storage - 1);
    if (!first || first->same_storage || first->data != t->data || first->bytes != t->bytes)
        return tenrec_fail(err, TENREC_EINVAL,
                           "tensor %u: same_storage is %llu, which names no earlier tensor with "
                           "this storage",
                           i, (unsigned long long)t->same_storage);
    if ((p->terms.capabilities && !(p->terms.capabilities & IDENTITY_SHARED_STORAGES)) ||
        link_concerns(msg) ||
        (!p->terms.capabilities && memcmp(&first->dtype, &t->dtype, sizeof t->dtype) != 0))
        t->same_storage = 0;
    return TENREC_OK;
}

tenrec_status message_check(const struct pipe *p, const struct tenrec_msg *msg, tenrec_error *err)
{
    if (message_is_own(msg) && !(p->terms.capabilities & IDENTITY_OWN_MESSAGES))
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "message type 0x%x is understood by Tenrec workers only", msg->type);
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);

        bool on_device;

        if (t->target.kind == 0)
            t->target = (struct tenrec_device){ TENREC_CPU, 0 };
        if (t->same_storage && message_check_sharing(p, msg, i, err))
            return TENREC_EINVAL;
        on_device = t->device.kind != TENREC_CPU || t->target.kind != TENREC_CPU;
        if (on_device ? !p->devices.role : !p->terms.channel)
            return tenrec_fail(err, TENREC_EUNSUPPORTED,
                               "tensor %u: no channel to this peer carries it from %s to %s "
                               "memory%s",
                               i, t->device.kind == TENREC_CPU ? "host" : "device",
                               t->target.kind == TENREC_CPU ? "host" : "device",
                               on_device ? ": both must be Tenrec workers whose option `channels` "
                                           "lists cuda_basic, and one must have devices"
                                         : "");
    }
    return TENREC_OK;
}

/* Under the lock: all of the message, whose tensors the peer maps, is in `now`, and the
 * connection is ours to write it. No record of another may be made in between: they
 * arrive in the order in which they were made. */
static bool encode_bundle(struct pipe *p, const struct tenrec_msg *msg,
                          const struct descriptor_note *notes, struct tenrec_done done,
                          struct bundle *now)
{
    if (!now || msg->payload_len > COPY_MAX || msg->n_tensors > SEND_REQUEST_FEW ||
        !pipe_take_writing(p))
        return false;
    now->len = send_request_encode_small(p, msg, notes, now->buf);
    if (!now->len) {
        pipe_give_writing(p);
        return false;
    }
    now->n_messages = 1;
    if (done.fn)
        now->done[now->n_done++] = done;
    return true;
}

static tenrec_status encode_and_queue(struct pipe *p, struct tenrec_msg *msg,
                                      struct descriptor_note *notes, struct tenrec_done done,
                                      uint64_t charge, struct bundle *now, tenrec_error *err)
{
    const bool all = send_request_share(p, msg, notes);
    struct send_request *request;
    tenrec_status st;

    if (all && msg->n_tensors && encode_bundle(p, msg, notes, done, now))
        return TENREC_OK;
    st = send_request_encode(p, msg, notes, &request, err);
    if (st) {
        send_request_take_back(p, msg, notes);
        return st;
    }
    counter_add(&p->queue.n_queued, 1);
    pipe_charge_message(p, request, charge);
    send_request_add_done(p, request, done);
    pipe_enqueue(p, request);
    return TENREC_OK;
}

tenrec_status pipe_encode_message(struct pipe *p, struct tenrec_msg *msg, struct tenrec_done done,
                                  uint64_t charge, struct bundle *now, tenrec_error *err)
{
    struct descriptor_note few[SEND_REQUEST_FEW], *notes = few;
    tenrec_status st = message_check(p, msg, err);

    if (!st)
        st = send_request_check(p, msg, err);
    if (st)
        return st;
    if (msg->n_tensors > SEND_REQUEST_FEW)
        notes = malloc(msg->n_tensors * sizeof *notes);
    if (!notes)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %u tensors", msg->n_tensors);
    st = encode_and_queue(p, msg, notes, done, charge, now, err);
    if (notes != few)
        free(notes);
    return st;
}

/* Under the lock: before the handshake is over, for deferred connections, or for the link. */
static tenrec_status queue_unencoded(struct pipe *p, struct send_request_list *list,
                                     struct tenrec_msg *msg, struct tenrec_done done,
                                     uint64_t charge, tenrec_error *err)
{
    struct send_request *request = send_request_new(p, 0);

    if (!request)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a message");
    request->msg = msg;
    pipe_charge_message(p, request, charge);
    send_request_add_done(p, request, done);
    send_request_list_add(list, request);
    return TENREC_OK;
}

bool pipe_is_for_link(const struct pipe *p, const struct tenrec_msg *msg)
{
    return p->devices.role && msg->n_tensors && link_concerns(msg);
}

tenrec_status pipe_queue_message(struct pipe *p, struct tenrec_msg *msg, struct tenrec_done done,
                                 uint64_t charge, struct bundle *now, tenrec_error *err)
{
    tenrec_status st;

    if (pipe_state(p) != PIPE_ESTABLISHED || pipe_holds_message(p, msg))
        return queue_unencoded(p, &p->queue.pending, msg, done, charge, err);
    if (!pipe_is_for_link(p, msg))
        return pipe_encode_message(p, msg, done, charge, now, err);
    st = queue_unencoded(p, &p->devices.sends, msg, done, charge, err);
    if (!st)
        pipe_post(p, &p->devices.task);
    return st;
}
