/* SPDX-License-Identifier: Apache-2.0 */
#include "core/tensor/tensor.h"

#include <string.h>

#include "core/backend/backend.h"
#include "core/base/fail.h"
#include "core/tensor/mapping.h"

/* Behind the descriptors. A message without tensors whose payload has no owner either is a plain
 * message of message_new. */
struct owners {
    void (*release)(struct tenrec_msg *msg); /* of the plain message */
    struct payload_owner payload;            /* NULL: it is in the message */
    struct tenrec_tensor *tensor[];
};

static struct owners *owners_of(const struct tenrec_msg *msg)
{
    return (struct owners *)(void *)((char *)msg->tensors +
                                     (size_t)msg->n_tensors * msg->tensor_size);
}

static void message_release(struct tenrec_msg *msg)
{
    const struct owners *o = owners_of(msg);

    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        tenrec_tensor_drop(o->tensor[i]);
        /* Arrived, but was never placed. */
        if (unlikely(tenrec_msg_tensor(msg, i)->mapping != NULL))
            mapping_drop(tenrec_msg_tensor(msg, i)->mapping);
    }
    if (o->payload.owner)
        o->payload.drop(o->payload.owner);
    o->release(msg);
}

static struct tenrec_msg *message_with_owners(uint64_t payload_len, uint32_t n_tensors)
{
    const uint64_t bytes =
        sizeof(struct owners) + (uint64_t)n_tensors * sizeof(struct tenrec_tensor *);
    struct tenrec_msg *msg;
    struct owners *o;

    if (payload_len > UINT64_MAX - bytes)
        return NULL;
    msg = message_new(payload_len + bytes, n_tensors);
    if (!msg)
        return NULL;
    if (n_tensors == 0)
        msg->tensors = msg->payload; /* none, and the owners behind them */
    o = owners_of(msg);
    memset(o, 0, (size_t)bytes);
    o->release = msg->release;
    msg->release = message_release;
    msg->payload = (char *)o + bytes;
    msg->payload_len = payload_len;
    return msg;
}

struct tenrec_msg *rpc_message_new(uint64_t payload_len, uint32_t n_tensors)
{
    return n_tensors == 0 ? message_new(payload_len, 0)
                          : message_with_owners(payload_len, n_tensors);
}

struct tenrec_msg *rpc_message_new_around(const struct payload_owner *payload, void *data,
                                          uint64_t payload_len, uint32_t n_tensors)
{
    struct tenrec_msg *msg = message_with_owners(0, n_tensors);

    if (!msg)
        return NULL;
    owners_of(msg)->payload = *payload;
    msg->payload = data;
    msg->payload_len = payload_len;
    return msg;
}

struct tenrec_msg *rpc_message_copy(const struct tenrec_msg *msg)
{
    struct tenrec_msg *copy = rpc_message_new(msg->payload_len, msg->n_tensors);

    if (!copy)
        return NULL;
    copy->type = msg->type;
    copy->flags = msg->flags;
    if (msg->payload_len)
        memcpy(copy->payload, msg->payload, (size_t)msg->payload_len);
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        struct tenrec_tensor *t = rpc_message_owner(msg, i);

        *tenrec_msg_tensor(copy, i) = *tenrec_msg_tensor(msg, i);
        if (t)
            rpc_message_set_owner(copy, i, tenrec_tensor_share(t));
    }
    return copy;
}

void *rpc_message_take_payload(struct tenrec_msg *msg)
{
    void *owner;

    if (msg->release != message_release)
        return NULL;
    owner = owners_of(msg)->payload.owner;
    if (owner) {
        owners_of(msg)->payload.owner = NULL;
        msg->payload = NULL;
        msg->payload_len = 0;
    }
    return owner;
}

void rpc_message_set_owner(struct tenrec_msg *msg, uint32_t i, struct tenrec_tensor *t)
{
    struct tenrec_tensor **slot = &owners_of(msg)->tensor[i];

    tenrec_tensor_drop(*slot);
    *slot = t;
}

void rpc_message_set_tensor(struct tenrec_msg *msg, uint32_t i, struct tenrec_tensor *t)
{
    *tenrec_msg_tensor(msg, i) = *tenrec_tensor_desc(t);
    rpc_message_set_owner(msg, i, t);
}

static void drop_first(void *first, void *data)
{
    (void)data;
    tenrec_tensor_drop(first);
}

tenrec_status rpc_message_share_storage(struct tenrec_msg *msg, uint32_t i, tenrec_error *err)
{
    struct tenrec_tensor_desc *d = tenrec_msg_tensor(msg, i);
    struct tenrec_tensor *first = rpc_message_owner(msg, (uint32_t)d->same_storage - 1), *t;
    const struct tenrec_tensor_desc *owner;
    struct tenrec_tensor_desc view = *d;
    tenrec_status st;

    if (d->same_storage > i || !first)
        return tenrec_fail(err, TENREC_EINVAL, "tensor %u has no storage to share", i);
    owner = tenrec_tensor_desc(first);
    view.data = owner->data;
    view.bytes = owner->bytes;
    view.device = view.target = owner->device;
    view.stream = owner->stream;
    view.flags = (d->flags & ~TENREC_TENSOR_READ_ONLY) | (owner->flags & TENREC_TENSOR_READ_ONLY);
    view.same_storage = 0;
    st = tensor_from_desc(&view, drop_first, first, &t, err);
    if (st != TENREC_OK)
        return st;
    tenrec_tensor_share(first);
    d->data = view.data;
    d->device = d->target = view.device;
    d->stream = view.stream;
    rpc_message_set_owner(msg, i, t);
    return TENREC_OK;
}

struct tenrec_tensor *rpc_message_owner(const struct tenrec_msg *msg, uint32_t i)
{
    if (msg->release != message_release || i >= msg->n_tensors)
        return NULL;
    return owners_of(msg)->tensor[i];
}
