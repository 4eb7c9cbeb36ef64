/* SPDX-License-Identifier: Apache-2.0 */
#include "torch/member/reply.h"

#include "core/base/memory.h"
#include "core/base/text.h"
#include "torch/member/pyobject.h"

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

tenrec_status nested_pickle(const struct pyobject *o, uint32_t behind, struct bytes_slice *ret,
                            tenrec_error *err)
{
    const uint32_t at = o->kind == PY_TUPLE && o->n > behind ? o->n - behind - 1 : 0;
    bool good = o->kind == PY_TUPLE && o->n > behind && o->u.item[at]->kind == PY_BYTES;

    for (uint32_t i = 0; i < at && good; i++)
        good = o->u.item[i]->kind == PY_TENSOR && o->u.item[i]->u.integer == i;
    if (!good)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "malformed message: expected its tensors and a pickle");
    *ret = o->u.item[at]->u.text;
    return TENREC_OK;
}

/* What the message carries as a value; NULL in *ret: nothing. */
static tenrec_status reply_object(const struct tenrec_msg *msg, struct reply *r,
                                  const struct pyobject **ret, tenrec_error *err)
{
    const size_t len = (size_t)msg->payload_len;
    struct bytes_slice inner;
    tenrec_status st;

    *ret = NULL;
    if (msg->type == TENREC_MSG_REMOTE_RET || msg->type == TENREC_MSG_RREF_ACK)
        return TENREC_OK;
    if (msg->type == TENREC_MSG_RET)
        return unpickle(msg->payload, len, &r->arena, ret, err);
    st = unpickle_jit(msg->payload, len, &r->arena, ret, err);
    if (st != TENREC_OK || msg->type == TENREC_MSG_SCRIPT_RET)
        return st;
    if (msg->type == TENREC_MSG_RREF_FETCH_RET) {
        st = nested_pickle(*ret, 0, &inner, err);
        return st == TENREC_OK ? unpickle(inner.data, inner.len, &r->arena, ret, err) : st;
    }
    if ((*ret)->kind != PY_TUPLE || (*ret)->n != 1)
        return tenrec_fail(err, TENREC_EPROTOCOL, "malformed message: expected one value");
    *ret = (*ret)->u.item[0];
    return TENREC_OK;
}

tenrec_status reply_read(struct tenrec_msg *msg, int32_t type, struct rref_context *refs,
                         tenrec_peer from, struct reply *ret, tenrec_error *err)
{
    const struct pyobject *o = NULL;
    tenrec_status st;

    *ret = (struct reply){ .value = tenrec_value_nil(), .refs = { .ctx = refs, .from = from } };
    if (msg->type == TENREC_MSG_EXCEPTION)
        return fail_remote(msg->payload, (size_t)msg->payload_len, err);
    if (msg->type != type)
        return tenrec_fail(err, TENREC_EPROTOCOL, "an answer of type 0x%x, expected 0x%x",
                           (unsigned)msg->type, (unsigned)type);
    st = message_tensors_take(msg, &ret->tensors, err);
    if (st == TENREC_OK)
        st = reply_object(msg, ret, &o, err);
    if (st == TENREC_OK && o && pyobject_is(o, PY_INTERNAL, "RemoteException", 2) &&
        o->u.item[1]->kind == PY_TEXT)
        return fail_remote(o->u.item[1]->u.text.data, o->u.item[1]->u.text.len, err);
    if (st == TENREC_OK && o)
        st = pyobject_value(o, &ret->arena,
                            &(struct pyobject_source){ .tensor = ret->tensors.tensor,
                                                       .n_tensors = ret->tensors.n,
                                                       .refs = &ret->refs,
                                                       .bytes = (size_t)msg->payload_len },
                            &ret->value, err);
    arrivals_tell(&ret->refs);
    if (st != TENREC_OK)
        tenrec_error_prefix(err, "answer");
    return st;
}

void reply_finish(struct reply *a)
{
    arrivals_finish(&a->refs);
    message_tensors_finish(&a->tensors);
    arena_finish(&a->arena);
}
