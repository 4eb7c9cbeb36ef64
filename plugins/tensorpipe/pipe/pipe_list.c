/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_list.c - the list of tensors of a message that is being read: which storages that
 * the message carries they are views of. */
#include "pipe/pipe.h"
#include "wire/storage.h"
#include "wire/tensorlist.h"

static tenrec_status list_read_into(struct arrival *a, const unsigned char *frame, size_t len,
                                    struct tenrec_msg *msg, uint32_t *ret_n, tenrec_error *err)
{
    const struct listed to = { .carried = a->carried,
                               .n_carried = a->n_tensors,
                               .tensors = msg->tensors,
                               .room = msg->n_tensors,
                               .tensor_size = msg->tensor_size,
                               .max = MESSAGE_TENSORS_MAX };

    return shortlist_is(frame, len) ? shortlist_read(frame, len, &to, ret_n, err)
                                    : tensorlist_read(frame, len, &to, ret_n, err);
}

/* Sources and destinations of the tensors, and the mappings that arrived with them. */
static void list_move_targets(struct arrival *a, struct tenrec_msg *to)
{
    for (uint32_t i = 0; i < a->n_tensors; i++) {
        struct tenrec_tensor_desc *old = tenrec_msg_tensor(a->msg, i);
        struct tenrec_tensor_desc *t = tenrec_msg_tensor(to, a->carried[i].tensor);

        t->device = old->device;
        t->target = old->target;
        t->source = old->source;
        t->mapping = old->mapping;
        old->mapping = NULL;
    }
    for (uint32_t i = 0; i < to->n_tensors; i++) {
        struct tenrec_tensor_desc *t = tenrec_msg_tensor(to, i);
        const struct tenrec_tensor_desc *first;

        if (!t->same_storage)
            continue;
        first = tenrec_msg_tensor(to, (uint32_t)t->same_storage - 1);
        t->device = first->device;
        t->target = first->target;
        t->source = first->source;
    }
}

/* The message was made with a tensor per storage, as nearly all have; its list has more. Its
 * payload is in place already, so that this message is copied. */
static tenrec_status list_widen(struct pipe *p, const unsigned char *frame, size_t len, uint32_t n,
                                tenrec_error *err)
{
    struct endpoint *ep = p->ep;
    struct arrival *a = &p->read.now;
    struct tenrec_msg *wide;
    tenrec_status st;

    if (a->arriving)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "%u tensors of %u storages: tensors share storages only in messages "
                           "without memory of devices",
                           n, a->n_tensors);
    st = pipe_announced(p, a->msg->payload_len + (uint64_t)n * sizeof(struct tenrec_tensor_desc),
                        err);
    if (st)
        return st;
    wide = ep->host->msg_new(ep->self, a->msg->payload_len, n);
    if (!wide)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a message of %llu bytes, %u tensors",
                           (unsigned long long)a->msg->payload_len, n);
    st = list_read_into(a, frame, len, wide, &n, err);
    if (st) {
        wide->release(wide);
        return st;
    }
    wide->type = a->msg->type;
    wide->id = a->msg->id;
    wide->flags = a->msg->flags;
    if (wide->payload_len)
        memcpy(wide->payload, a->msg->payload, (size_t)wide->payload_len);
    list_move_targets(a, wide);
    a->msg->release(a->msg);
    a->msg = wide;
    return TENREC_OK;
}

tenrec_status message_read_list(struct pipe *p, const unsigned char *frame, size_t len,
                                tenrec_error *err)
{
    uint32_t n;
    tenrec_status st = list_read_into(&p->read.now, frame, len, p->read.now.msg, &n, err);

    return st || n == p->read.now.n_tensors ? st : list_widen(p, frame, len, n, err);
}
