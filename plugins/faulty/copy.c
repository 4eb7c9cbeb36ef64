/* SPDX-License-Identifier: Apache-2.0 */
#include "faulty.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The message whose bytes its shells share. */
struct origin {
    struct tenrec_msg *msg;
    atomic_uint shares;
};

/* A message of this plugin around the bytes of its origin. */
struct shell {
    struct tenrec_msg msg; /* first: a pointer to it is a pointer to the shell */
    struct origin *origin;
    unsigned char payload[]; /* empty when the shell uses the origin's */
};

static void shell_release(struct tenrec_msg *msg)
{
    struct shell *s = (struct shell *)msg;

    if (atomic_fetch_sub(&s->origin->shares, 1) == 1) {
        s->origin->msg->release(s->origin->msg);
        free(s->origin);
    }
    free(s);
}

static struct tenrec_msg *shell_new(const struct tenrec_msg *msg, struct origin *origin,
                                    bool own_payload)
{
    const size_t room = own_payload ? (size_t)msg->payload_len : 0;
    struct shell *s = room < SIZE_MAX / 2 ? malloc(sizeof *s + room) : NULL;

    if (!s)
        return NULL;
    memset(&s->msg, 0, sizeof s->msg);
    memcpy(&s->msg, msg, msg->size < sizeof s->msg ? msg->size : sizeof s->msg);
    s->msg.size = sizeof s->msg;
    s->msg.release = shell_release;
    s->origin = origin;
    if (room) {
        memcpy(s->payload, msg->payload, room);
        s->msg.payload = s->payload;
    }
    return &s->msg;
}

bool copy_to_send(struct tenrec_msg *msg, bool own_payload, unsigned n, struct tenrec_msg *ret[])
{
    struct origin *o = malloc(sizeof *o);
    unsigned made = 0;

    while (o && made < n && (ret[made] = shell_new(msg, o, own_payload)) != NULL)
        made++;
    if (!o || made < n) {
        while (made > 0)
            free(ret[--made]);
        free(o);
        return false;
    }
    o->msg = msg;
    atomic_init(&o->shares, n);
    return true;
}

static bool is_readable(const struct tenrec_msg *msg)
{
    for (uint32_t i = 0; i < msg->n_tensors; i++)
        if (tenrec_msg_tensor(msg, i)->device.kind != TENREC_CPU)
            return false;
    return true;
}

struct tenrec_msg *copy_received(struct tenrec_agent *self, tenrec_peer from,
                                 const struct tenrec_msg *msg)
{
    struct tenrec_msg *copy;
    tenrec_error why;

    if (!is_readable(msg))
        return NULL;
    copy = self->host->msg_new(self, msg->payload_len, msg->n_tensors);
    if (!copy)
        return NULL;
    copy->type = msg->type;
    copy->id = msg->id;
    copy->deadline_ns = msg->deadline_ns;
    copy->key_len = msg->key_len;
    copy->flags = msg->flags;
    copy->route = msg->route;
    if (msg->payload_len)
        memcpy(copy->payload, msg->payload, (size_t)msg->payload_len);
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        *tenrec_msg_tensor(copy, i) = *tenrec_msg_tensor(msg, i);
        tenrec_msg_tensor(copy, i)->data = NULL;
    }
    if (copy->n_tensors && self->host->place(self, from, copy, &why) != TENREC_OK) {
        copy->release(copy);
        return NULL;
    }
    /* place() gives both messages the same address for a result: the caller's buffer. */
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        const struct tenrec_tensor_desc *a = tenrec_msg_tensor(msg, i);
        const struct tenrec_tensor_desc *b = tenrec_msg_tensor(copy, i);
        if (a->bytes && a->data && b->data && a->data != b->data)
            memcpy(b->data, a->data, (size_t)a->bytes);
    }
    return copy;
}
