/* SPDX-License-Identifier: Apache-2.0 */
#include "torch_member/reply.h"

#include "base/memory.h"
#include "base/utf8.h"
#include "torch_member/pyobject_value.h"

#include <stdlib.h>
#include <tenrec/chain.h>

tenrec_status message_tensors_take(struct tenrec_msg *msg, struct message_tensors *ret,
                                   tenrec_error *err)
{
    *ret = (struct message_tensors){ .n = 0 };
    if (msg->n_tensors == 0)
        return TENREC_OK;
    ret->tensor = memory_new(msg->n_tensors, sizeof(struct tenrec_tensor *));
    if (!ret->tensor)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %u tensors", msg->n_tensors);
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        ret->tensor[i] = tenrec_msg_take_tensor(msg, i);
        if (!ret->tensor[i])
            return tenrec_fail(err, TENREC_EPROTOCOL, "tensor %u has no memory here", i);
        ret->n++;
    }
    return TENREC_OK;
}

void message_tensors_finish(struct message_tensors *t)
{
    for (size_t i = 0; i < t->n; i++)
        tenrec_tensor_drop(t->tensor[i]);
    free(t->tensor);
    *t = (struct message_tensors){ .n = 0 };
}

/* The text of a peer, cut to what an error holds. */
static tenrec_status fail_remote(const void *text, size_t len, tenrec_error *err)
{
    char clean[sizeof((tenrec_error *)0)->text];

    utf8_clean(text, len, clean, sizeof clean);
    return tenrec_fail(err, TENREC_EREMOTE, "%s", clean);
}

tenrec_status reply_read(struct tenrec_msg *msg, struct reply *ret, tenrec_error *err)
{
    const struct pyobject *o;
    tenrec_status st;

    *ret = (struct reply){ .value = tenrec_value_nil() };
    if (msg->type == TENREC_MSG_EXCEPTION)
        return fail_remote(msg->payload, (size_t)msg->payload_len, err);
    if (msg->type != TENREC_MSG_RET && msg->type != TENREC_MSG_SCRIPT_RET)
        return tenrec_fail(err, TENREC_EPROTOCOL, "an answer of type 0x%x", (unsigned)msg->type);
    st = message_tensors_take(msg, &ret->tensors, err);
    if (st == TENREC_OK)
        st = unpickle(msg->payload, (size_t)msg->payload_len, &ret->arena, &o, err);
    if (st == TENREC_OK && pyobject_is(o, PY_INTERNAL, "RemoteException", 2) &&
        o->u.item[1]->kind == PY_TEXT)
        return fail_remote(o->u.item[1]->u.text.data, o->u.item[1]->u.text.len, err);
    if (st == TENREC_OK)
        st = pyobject_value(o, &ret->arena, ret->tensors.tensor, ret->tensors.n, &ret->value, err);
    if (st != TENREC_OK)
        tenrec_error_prefix(err, "answer");
    return st;
}

void reply_finish(struct reply *a)
{
    message_tensors_finish(&a->tensors);
    arena_finish(&a->arena);
}
