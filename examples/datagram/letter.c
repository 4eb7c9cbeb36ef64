/* SPDX-License-Identifier: Apache-2.0 */
#include "letter.h"

#include <string.h>

struct letter {
    int32_t type;
    uint32_t key_len, n_tensors, reserved;
    int64_t id;
    uint64_t deadline_ns, payload_len;
};

uint64_t letter_bytes(const struct tenrec_msg *msg)
{
    return sizeof(struct letter) + msg->n_tensors * sizeof(struct tenrec_tensor_desc) +
           tenrec_msg_bytes(msg);
}

void letter_write(const struct tenrec_msg *msg, unsigned char *to)
{
    const struct letter head = { .type = msg->type,
                                 .key_len = msg->key_len,
                                 .n_tensors = msg->n_tensors,
                                 .id = msg->id,
                                 .deadline_ns = msg->deadline_ns,
                                 .payload_len = msg->payload_len };

    memcpy(to, &head, sizeof head);
    to += sizeof head;
    for (uint32_t i = 0; i < msg->n_tensors; i++, to += sizeof(struct tenrec_tensor_desc)) {
        struct tenrec_tensor_desc desc = *tenrec_msg_tensor(msg, i);

        desc.data = NULL;
        desc.mapping = NULL;
        memcpy(to, &desc, sizeof desc);
    }
    if (msg->payload_len)
        memcpy(to, msg->payload, msg->payload_len);
    to += msg->payload_len;
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        const struct tenrec_tensor_desc *desc = tenrec_msg_tensor(msg, i);

        if (desc->bytes)
            memcpy(to, desc->data, desc->bytes);
        to += desc->bytes;
    }
}

struct tenrec_msg *letter_read(struct tenrec_agent *self, const unsigned char *at, uint64_t len)
{
    struct tenrec_tensor_desc desc;
    struct tenrec_msg *msg;
    struct letter head;
    uint64_t rest;

    if (len < sizeof head)
        return NULL;
    memcpy(&head, at, sizeof head);
    rest = len - sizeof head;
    if (head.n_tensors > rest / sizeof desc)
        return NULL;
    rest -= head.n_tensors * sizeof desc;
    if (head.payload_len > rest || head.key_len > head.payload_len)
        return NULL;
    rest -= head.payload_len;
    for (uint32_t i = 0; i < head.n_tensors; i++) {
        memcpy(&desc, at + sizeof head + i * sizeof desc, sizeof desc);
        if (desc.ndim > TENREC_MAX_DIMS || desc.bytes > rest || desc.same_storage > i ||
            desc.data || desc.mapping || desc.device.kind != TENREC_CPU)
            return NULL;
        rest -= desc.bytes;
    }
    msg = rest ? NULL : self->host->msg_new(self, head.payload_len, head.n_tensors);
    if (!msg)
        return NULL;
    msg->type = head.type;
    msg->id = head.id;
    msg->key_len = head.key_len;
    msg->deadline_ns = head.deadline_ns;
    at += sizeof head;
    for (uint32_t i = 0; i < head.n_tensors; i++, at += sizeof desc)
        memcpy(tenrec_msg_tensor(msg, i), at, sizeof desc);
    if (head.payload_len)
        memcpy(msg->payload, at, head.payload_len);
    return msg;
}
