/* SPDX-License-Identifier: Apache-2.0 */
/* request_read.c - what a request of a torch worker calls. */
#include "torch/member/torch_request.h"

#include <string.h>
#include <tenrec/message.h>

/* The operator, or the TorchScript function, that the first `n` items of a tuple call:
 * (arguments..., schema, "torch.ops.aten.x") or (arguments..., is_async, "__torch__.x"). */
static tenrec_status script_read(const struct pyobject *o, uint32_t n, struct request_call *ret,
                                 tenrec_error *err)
{
    static const char operators[] = "torch.ops.aten.";
    const struct pyobject *last, *before;

    if (n < 2 || o->u.item[n - 1]->kind != PY_TEXT)
        return tenrec_fail(err, TENREC_EPROTOCOL, "malformed call: expected arguments and a name");
    last = o->u.item[n - 1];
    before = o->u.item[n - 2];
    ret->arg = o->u.item;
    ret->n = n - 2;
    ret->name = last->u.text;
    if (last->u.text.len < strlen(operators) ||
        memcmp(last->u.text.data, operators, strlen(operators)) != 0)
        return TENREC_OK;
    if (before->kind != PY_TEXT)
        return tenrec_fail(err, TENREC_EPROTOCOL, "malformed call: the schema is no text");
    ret->name = before->u.text;
    return TENREC_OK;
}

/* PythonUDF(function, arguments, keyword arguments) */
static tenrec_status python_read(const struct pyobject *o, struct request_call *ret,
                                 tenrec_error *err)
{
    const struct pyobject *args;

    if (!pyobject_is(o, PY_INTERNAL, "PythonUDF", 3) || o->u.item[1]->kind != PY_GLOBAL ||
        (o->u.item[2]->kind != PY_TUPLE && o->u.item[2]->kind != PY_LIST) ||
        o->u.item[3]->kind != PY_DICT)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "malformed call: expected a function, its arguments and a dict");
    args = o->u.item[2];
    ret->arg = args->u.item;
    ret->n = args->n;
    ret->module = o->u.item[1]->u.item[0]->u.text;
    ret->name = o->u.item[1]->u.item[1]->u.text;
    ret->keywords = o->u.item[3]->n > 0;
    return TENREC_OK;
}

/* A text of the module, a dot and the name; in the arena. */
static tenrec_status request_name(struct tenrec_torch_request *r, const struct request_call *call,
                                  tenrec_error *err)
{
    const size_t first = call->module.data ? call->module.len + 1 : 0;
    char *name = arena_new(&r->arena, first + call->name.len + 1, 1);

    if (!name)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a call");
    if (first > 0) {
        memcpy(name, call->module.data, call->module.len);
        name[first - 1] = '.';
    }
    memcpy(name + first, call->name.data, call->name.len);
    r->name = name;
    return TENREC_OK;
}

/* ---- creations ------------------------------------------------------------------------ */

/* Begins the creation whose ids stand before the last `behind` items of a tuple. */
static tenrec_status creation_begin(struct tenrec_torch_request *r, const struct pyobject *o,
                                    uint32_t behind, tenrec_error *err)
{
    struct rref_id id, fork;

    if (o->kind != PY_TUPLE || o->n < behind + 2 ||
        !pyobject_rref_id(o->u.item[o->n - behind - 2], &id) ||
        !pyobject_rref_id(o->u.item[o->n - behind - 1], &fork))
        return tenrec_fail(err, TENREC_EPROTOCOL, "malformed call: it ends without its two ids");
    if (r->from < 0 || r->from == r->member->id || id.on != r->from || fork.on != r->from)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "malformed call: worker %d creates a reference of worker %lld",
                           (int)r->from, (long long)id.on);
    r->made_fork = fork;
    return rref_begin_making(r->member->refs, id, fork, r->from, &r->made, err);
}

static tenrec_status read_python(struct tenrec_torch_request *r, struct request_call *ret,
                                 tenrec_error *err)
{
    const bool remote = r->msg->type == TENREC_MSG_REMOTE_CALL;
    struct bytes_slice text = { r->msg->payload, (size_t)r->msg->payload_len };
    const struct pyobject *o;
    tenrec_status st;

    if (remote) {
        /* (tensors..., pickle, two ids, is_async) */
        st = unpickle_jit(text.data, text.len, &r->arena, &o, err);
        if (st == TENREC_OK)
            st = creation_begin(r, o, 1, err);
        if (st == TENREC_OK)
            st = nested_pickle(o, 3, &text, err);
        if (st != TENREC_OK)
            return st;
    } else if (text.len < 2) {
        return tenrec_fail(err, TENREC_EPROTOCOL, "malformed call: it is empty");
    } else {
        /* The flag of functions that return a future has no meaning here. */
        text.data++;
        text.len--;
    }
    st = unpickle(text.data, text.len, &r->arena, &o, err);
    return st == TENREC_OK ? python_read(o, ret, err) : st;
}

static tenrec_status read_script(struct tenrec_torch_request *r, struct request_call *ret,
                                 tenrec_error *err)
{
    const bool remote = r->msg->type == TENREC_MSG_SCRIPT_REMOTE_CALL;
    const struct pyobject *o;
    tenrec_status st;

    if (r->msg->payload_len == 0)
        return tenrec_fail(err, TENREC_EPROTOCOL, "malformed call: it is empty");
    st = unpickle_jit(r->msg->payload, (size_t)r->msg->payload_len, &r->arena, &o, err);
    if (st == TENREC_OK && o->kind != PY_TUPLE)
        st = tenrec_fail(err, TENREC_EPROTOCOL, "malformed call: expected arguments and a name");
    if (st == TENREC_OK && remote)
        st = creation_begin(r, o, 0, err);
    return st == TENREC_OK ? script_read(o, remote ? o->n - 2 : o->n, ret, err) : st;
}

tenrec_status request_read(struct tenrec_torch_request *r, struct request_call *ret,
                           tenrec_error *err)
{
    tenrec_status st;

    *ret = (struct request_call){ .n = 0 };
    switch (r->msg->type) {
    case TENREC_MSG_CALL:
    case TENREC_MSG_REMOTE_CALL:
        st = read_python(r, ret, err);
        break;
    case TENREC_MSG_SCRIPT_CALL:
    case TENREC_MSG_SCRIPT_REMOTE_CALL:
        st = read_script(r, ret, err);
        break;
    default:
        return tenrec_fail(err, TENREC_EUNSUPPORTED, "message type 0x%x is not supported here",
                           (unsigned)r->msg->type);
    }
    return st == TENREC_OK ? request_name(r, ret, err) : st;
}
