/* SPDX-License-Identifier: Apache-2.0 */
/* outgoing.c - a message to send as its head, its data and the parts that travel apart. */
#include "send.h"

#include <stdlib.h>

void outgoing_free(struct outgoing *o)
{
    if (o->msg)
        o->msg->release(o->msg);
    free(o->data_owned);
    free(o->part);
    free(o);
}

static bool outgoing_is_host(struct tenrec_device d)
{
    return d.kind == TENREC_CPU || d.kind == 0;
}

static bool outgoing_shares(const struct tenrec_msg *msg, uint32_t i)
{
    const struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i), *first;

    if (t->same_storage > i)
        return false;
    first = tenrec_msg_tensor(msg, (uint32_t)t->same_storage - 1);
    return !first->same_storage && first->data == t->data && first->bytes == t->bytes;
}

/* Adds up the bytes of what the message carries. */
static tenrec_status outgoing_check(const struct tenrec_msg *msg, uint64_t *ret_bytes,
                                    tenrec_error *err)
{
    uint64_t all = msg->payload_len;

    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        const struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);

        if (!outgoing_is_host(t->device) || !outgoing_is_host(t->target))
            return tenrec_fail(err, TENREC_EUNSUPPORTED,
                               "tensor %u: backend ucx carries tensors in host memory only, from "
                               "and to; use backend tensorpipe for those of devices",
                               i);
        if (t->ndim > TENREC_MAX_DIMS || (t->same_storage && !outgoing_shares(msg, i)) ||
            (!t->same_storage && __builtin_add_overflow(all, t->bytes, &all)) || all > INT64_MAX)
            return tenrec_fail(err, TENREC_EINVAL, "tensor %u: malformed descriptor", i);
    }
    *ret_bytes = all;
    return TENREC_OK;
}

static bool outgoing_has_bytes(const struct tenrec_tensor_desc *t)
{
    return t->bytes && !t->same_storage;
}

/* The list of tensors, and what travels with it. */
struct plan {
    uint64_t list_len, inline_len;
    uint32_t n_parts;
    bool payload_apart;
};

static bool outgoing_inlines(struct plan *p, uint64_t bytes, uint64_t each)
{
    if (bytes > each || bytes > HEAD_INLINE_ALL - p->inline_len) {
        p->n_parts++;
        return false;
    }
    p->inline_len += bytes;
    return true;
}

static struct plan outgoing_plan(const struct tenrec_msg *msg, bool *apart)
{
    struct plan p = { .list_len = 0 };

    p.payload_apart = !outgoing_inlines(&p, msg->payload_len, HEAD_INLINE_ALL);
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        const struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);

        p.list_len += head_tensor_len(t);
        apart[i] = outgoing_has_bytes(t) && !outgoing_inlines(&p, t->bytes, HEAD_INLINE_TENSOR);
    }
    return p;
}

static void outgoing_add_part(struct outgoing *o, uint32_t index, const void *data, uint64_t len)
{
    struct outgoing_part *part = &o->part[o->n_parts++];

    part->index = index;
    part->data = data;
    part->len = len;
}

/* The message has tensors. */
static bool outgoing_pack(struct outgoing *o)
{
    const struct tenrec_msg *msg = o->msg;
    bool *apart = calloc(msg->n_tensors, sizeof *apart);
    struct plan p;
    unsigned char *at, *bytes;

    if (!apart)
        return false;
    p = outgoing_plan(msg, apart);
    o->data_len = p.list_len + p.inline_len;
    o->data_owned = malloc(o->data_len);
    o->part = calloc(p.n_parts + 1, sizeof *o->part);
    if (!o->data_owned || !o->part) {
        free(apart);
        return false;
    }
    o->data = at = o->data_owned;
    bytes = at + p.list_len;
    o->head.list_len = p.list_len;
    o->head.flags = p.payload_apart ? HEAD_APART : 0;
    if (p.payload_apart) {
        outgoing_add_part(o, 0, msg->payload, msg->payload_len);
    } else if (msg->payload_len) {
        memcpy(bytes, msg->payload, msg->payload_len);
        bytes += msg->payload_len;
    }
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        const struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);

        at = head_tensor_write(at, t, apart[i]);
        if (apart[i]) {
            outgoing_add_part(o, i + 1, t->data, t->bytes);
        } else if (outgoing_has_bytes(t)) {
            memcpy(bytes, t->data, t->bytes);
            bytes += t->bytes;
        }
    }
    free(apart);
    return true;
}

struct outgoing *outgoing_new(struct tenrec_msg *msg, struct tenrec_done done, tenrec_error *err)
{
    struct outgoing *o;
    uint64_t bytes = 0;

    if (outgoing_check(msg, &bytes, err) != TENREC_OK)
        return NULL;
    o = calloc(1, sizeof *o);
    if (o) {
        o->msg = msg;
        o->done = done;
        o->bytes = bytes + HEAD_COST;
        o->head = (struct head){ .kind = HEAD_MESSAGE,
                                 .type = msg->type,
                                 .count = msg->n_tensors,
                                 .id = msg->id,
                                 .length = msg->payload_len };
        o->data = msg->payload;
        o->data_len = msg->payload_len;
        if (msg->n_tensors == 0 || outgoing_pack(o))
            return o;
        o->msg = NULL;
        outgoing_free(o);
    }
    tenrec_fail(err, TENREC_ENOMEM, "no memory for a message to send");
    return NULL;
}
