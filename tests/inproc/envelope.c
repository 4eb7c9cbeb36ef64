/* SPDX-License-Identifier: Apache-2.0 */
/* envelope.c - a message on its way: its copy, and its end. */
#include "inside.h"

#include "pretend.h"

#include <stdlib.h>

static void release_later(void *arg)
{
    struct tenrec_msg *msg = arg;

    msg->release(msg);
}

/* A stream on which a device reads memory of the message: its last reader. */
static bool device_reads(const struct tenrec_msg *msg, struct tenrec_stream *ret)
{
    for (uint32_t i = msg->n_tensors; i-- > 0;) {
        const struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);

        if (t->device.kind == TENREC_CPU)
            continue;
        *ret = (struct tenrec_stream){ t->device, t->stream };
        return true;
    }
    return false;
}

void settle(struct envelope *e, const tenrec_error *err)
{
    struct inproc *sender = e->sender;
    struct tenrec_stream reader;

    /* Those of all its devices were ordered before that one, by copy_tensors. */
    if (device_reads(e->msg, &reader))
        pretend_ops.launch(&reader, release_later, e->msg);
    else
        e->msg->release(e->msg);
    if (e->done.fn)
        e->done.fn(e->done.arg, err);
    free(e);
    /* Last of all: the waiter for `pending` may free this afterwards. */
    pthread_mutex_lock(&hub_lock);
    sender->pending--;
    pthread_cond_broadcast(&hub_moved);
    pthread_mutex_unlock(&hub_lock);
}

void settle_all(struct envelope *list, const tenrec_error *err)
{
    while (list) {
        struct envelope *e = list;
        list = e->next;
        settle(e, err);
    }
}

/* One tensor to where it was placed. Between devices nothing waits; the host does
 * when it is one of the two. */
static void copy_tensor(const struct tenrec_tensor_desc *from, const struct tenrec_tensor_desc *to)
{
    const struct tenrec_stream at_from = { from->device, from->stream };
    const struct tenrec_stream at_to = { to->device, to->stream };
    const bool from_host = from->device.kind == TENREC_CPU, to_host = to->device.kind == TENREC_CPU;

    if (from_host && to_host) {
        memcpy(to->data, from->data, from->bytes);
    } else if (to_host) {
        pretend_ops.ops.copy(&at_from, to->data, from->data, from->bytes, NULL);
        pretend_ops.ops.stream_wait(&at_from, NULL);
    } else if (from_host) {
        pretend_ops.ops.copy(&at_to, to->data, from->data, from->bytes, NULL);
        pretend_ops.ops.stream_wait(&at_to, NULL);
    } else {
        pretend_ops.ops.stream_order(&at_from, &at_to, NULL);
        pretend_ops.ops.copy(&at_to, to->data, from->data, from->bytes, NULL);
        pretend_ops.ops.stream_order(&at_to, &at_from, NULL);
    }
}

/* The stream that device_reads will report waits for all others. */
static void join_readers(const struct tenrec_msg *msg)
{
    struct tenrec_stream last, s;

    if (!device_reads(msg, &last))
        return;
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        const struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);

        s = (struct tenrec_stream){ t->device, t->stream };
        if (t->device.kind != TENREC_CPU &&
            (s.device.index != last.device.index || s.stream != last.stream))
            pretend_ops.ops.stream_order(&s, &last, NULL);
    }
}

struct tenrec_msg *copy_of(struct tenrec_agent *self, const struct envelope *e, bool *ret_asked,
                           tenrec_error *err)
{
    const struct tenrec_msg *msg = e->msg;
    struct tenrec_msg *copy = self->host->msg_new(self, msg->payload_len, msg->n_tensors);

    *ret_asked = copy && copy->n_tensors > 0;
    if (!copy) {
        tenrec_fail(err, TENREC_ENOMEM, "no memory for the message");
        return NULL;
    }
    copy->type = msg->type;
    copy->id = msg->id;
    copy->deadline_ns = msg->deadline_ns;
    copy->key_len = msg->key_len;
    copy->route = e->route;
    if (msg->payload_len)
        memcpy(copy->payload, msg->payload, msg->payload_len);
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        struct tenrec_tensor_desc *t = tenrec_msg_tensor(copy, i);
        *t = *tenrec_msg_tensor(msg, i);
        t->data = NULL;
        t->source = t->device;
        t->stream = 0;
    }
    if (copy->n_tensors && self->host->place(self, e->from, copy, err) != TENREC_OK) {
        copy->release(copy);
        return NULL;
    }
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        const struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);
        const struct tenrec_tensor_desc *to = tenrec_msg_tensor(copy, i);
        if (to->data && t->bytes)
            copy_tensor(t, to);
    }
    join_readers(msg);
    return copy;
}
