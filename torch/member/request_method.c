/* SPDX-License-Identifier: Apache-2.0 */
/* request_method.c - rref.rpc_sync().method(): torch asks the owner for the type of the value, and
 * then calls a function of its own that calls the method. Here an object is what a function of the
 * name of a class has made, and its methods are the functions "class.method". */
#include "torch/member/torch_request.h"

#include <string.h>
#include <tenrec/message.h>

#define TYPE_OF "torch.distributed.rpc.api._rref_typeof_on_owner"
#define INVOKE "torch.distributed.rpc.rref_proxy._local_invoke"

/* The class of Python that a plain value is of; NULL: none that torch could look up. */
static const char *class_of(const struct tenrec_value *v)
{
    switch (v->type) {
    case TENREC_VALUE_BOOL:
        return "builtins.bool";
    case TENREC_VALUE_INT:
        return "builtins.int";
    case TENREC_VALUE_DOUBLE:
        return "builtins.float";
    case TENREC_VALUE_TEXT:
        return "builtins.str";
    case TENREC_VALUE_BYTES:
        return "builtins.bytes";
    case TENREC_VALUE_ARRAY:
        return "builtins.list";
    case TENREC_VALUE_MAP:
        return "builtins.dict";
    case TENREC_VALUE_TENSOR:
        return "torch.Tensor";
    default:
        return NULL;
    }
}

/* Its value is made: the request has waited for it. */
static tenrec_status method_owner(const struct tenrec_torch_request *r, struct rref_owner **ret,
                                  tenrec_error *err)
{
    struct rref_owner *o = r->n_args > 0 && r->args[0].type == TENREC_VALUE_RREF
                               ? rref_owner_of(r->args[0].u.rref)
                               : NULL;

    if (!o)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "malformed call: expected a reference to a value of this worker");
    *ret = o;
    return o->ref.error ? tenrec_fail(err, o->ref.error->code, "%s", o->ref.error->text)
                        : TENREC_OK;
}

static tenrec_status answer_type(struct tenrec_torch_request *r, struct rref_owner *o,
                                 tenrec_error *err)
{
    char name[REFERENCE_FUNCTION_MAX + 1];
    const char *class_name = name, *dot;
    struct pickler p = { .jit = false };

    reference_function(&o->ref, name);
    if (!torch_functions_has_methods(r->member, name))
        class_name = class_of(o->value);
    if (!class_name || !(dot = strrchr(class_name, '.')))
        return tenrec_fail(err, TENREC_EUNSUPPORTED, "the referenced value has no class of Python");
    pickler_begin(&p);
    pickler_global(&p, class_name, (size_t)(dot - class_name), dot + 1);
    pickler_end(&p);
    return pickler_message(&p, TENREC_MSG_RET, &r->reply, err);
}

/* (reference, name, arguments, keyword arguments) becomes class.name(reference, arguments...). */
static tenrec_status find_method(struct tenrec_torch_request *r, struct rref_owner *o,
                                 tenrec_error *err)
{
    char class_name[REFERENCE_FUNCTION_MAX + 1], *name;
    const struct tenrec_value *in = r->args;
    struct tenrec_value *args;
    size_t len;

    if (r->n_args != 4 || in[1].type != TENREC_VALUE_TEXT || in[2].type != TENREC_VALUE_ARRAY ||
        in[3].type != TENREC_VALUE_MAP)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "malformed call: expected a reference, a name, arguments and a dict");
    if (in[3].n > 0)
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "functions of this worker take no keyword arguments");
    reference_function(&o->ref, class_name);
    len = strlen(class_name) + 1 + (size_t)in[1].n + 1;
    name = arena_new(&r->arena, len, 1);
    args = arena_new(&r->arena, (size_t)in[2].n + 1, sizeof *args);
    if (!name || !args)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a call");
    snprintf(name, len, "%s.%s", class_name, in[1].u.text);
    args[0] = in[0];
    for (uint64_t i = 0; i < in[2].n; i++)
        args[i + 1] = in[2].u.array[i];
    r->name = name;
    r->args = args;
    r->n_args = (size_t)in[2].n + 1;
    return TENREC_OK;
}

tenrec_status method_request(struct tenrec_torch_request *r, bool *ret_known, tenrec_error *err)
{
    const bool type = strcmp(r->name, TYPE_OF) == 0;
    struct rref_owner *o = NULL;
    tenrec_status st;

    *ret_known = false;
    if (request_is_script(r) ||
        (!type && strcmp(r->name, INVOKE) != 0 && strcmp(r->name, INVOKE "_async_execution") != 0))
        return TENREC_OK;
    st = method_owner(r, &o, err);
    if (st != TENREC_OK || !type)
        return st == TENREC_OK ? find_method(r, o, err) : st;
    if (r->made)
        return tenrec_fail(err, TENREC_EUNSUPPORTED, "a type is no value of this worker");
    *ret_known = true;
    return answer_type(r, o, err);
}
