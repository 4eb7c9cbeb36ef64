/* SPDX-License-Identifier: Apache-2.0 */
/* unpickle_call.c - the calls that a pickle may make. Each makes plain data, and no other name can
 * be called. */
#include "torch/member/unpickle.h"

#include "torch/member/references.h"

#include <string.h>

static bool span_is(const struct bytes_slice *s, const char *text)
{
    return s->len == strlen(text) && memcmp(s->data, text, s->len) == 0;
}

bool pyobject_is_text(const struct pyobject *o, const char *text)
{
    return o->kind == PY_TEXT && span_is(&o->u.text, text);
}

/* Is `o` of kind GLOBAL, and that name? */
static bool pyobject_is_global(const struct pyobject *o, const char *module, const char *name)
{
    return o->kind == PY_GLOBAL && span_is(&o->u.item[0]->u.text, module) &&
           span_is(&o->u.item[1]->u.text, name);
}

bool pyobject_is(const struct pyobject *o, const char *module, const char *name, uint32_t n)
{
    return o->kind == PY_OBJECT && o->n == n + 1 && pyobject_is_global(o->u.item[0], module, name);
}

/* A class, or a function, that makes an OBJECT. */
struct known_class {
    const char *module, *name;
};

static bool is_one_of(const struct pyobject *class, const struct known_class *known, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (pyobject_is_global(class, known[i].module, known[i].name))
            return true;
    return false;
}

static void refuse_call(struct unpickle *u, const struct pyobject *callable)
{
    if (callable->kind == PY_GLOBAL)
        unpickle_fail(
            u, TENREC_EUNSUPPORTED, "it calls '%.*s.%.*s': plain values and tensors only are read",
            BYTES_PRINT(callable->u.item[0]->u.text), BYTES_PRINT(callable->u.item[1]->u.text));
    else
        unpickle_fail(u, TENREC_EPROTOCOL, "it calls something that is no function");
}

/* An OBJECT with the items of `args` for its fields. */
static struct pyobject *object_new(struct unpickle *u, struct pyobject *class,
                                   const struct pyobject *args)
{
    struct pyobject *o = unpickle_new(u, PY_OBJECT);

    unpickle_append(u, o, class);
    for (uint32_t i = 0; i < args->n; i++)
        unpickle_append(u, o, args->u.item[i]);
    return o;
}

static struct pyobject *tensor_new(struct unpickle *u, const struct pyobject *args)
{
    struct pyobject *o;

    if (args->n != 1 || args->u.item[0]->kind != PY_INT || args->u.item[0]->u.integer < 0) {
        unpickle_fail(u, TENREC_EPROTOCOL, "a tensor needs its place in the message");
        return NULL;
    }
    o = unpickle_new(u, PY_TENSOR);
    if (o)
        o->u.integer = args->u.item[0]->u.integer;
    return o;
}

/* An id of a worker or a reference. */
static bool is_number(const struct pyobject *o, int64_t most)
{
    return o->kind == PY_INT && o->u.integer >= 0 && o->u.integer <= most;
}

bool pyobject_rref_id(const struct pyobject *o, struct rref_id *ret)
{
    if (o->kind != PY_TUPLE || o->n != 2 || !is_number(o->u.item[0], INT16_MAX) ||
        !is_number(o->u.item[1], INT64_MAX))
        return false;
    *ret = (struct rref_id){ o->u.item[0]->u.integer, o->u.item[1]->u.integer };
    return true;
}

/* `fields`: see PY_RREF */
static struct pyobject *rref_new(struct unpickle *u, const struct pyobject *fields)
{
    static const int64_t most[] = {
        INT16_MAX, INT16_MAX, INT64_MAX, INT16_MAX, INT64_MAX, INT16_MAX
    };
    const uint32_t n = sizeof most / sizeof *most;
    bool good = fields->kind == PY_TUPLE && fields->n == n + 1 &&
                fields->u.item[n]->kind == PY_TEXT &&
                fields->u.item[n]->u.text.len <= REFERENCE_TYPE_MAX;
    struct pyobject *o;

    for (uint32_t i = 0; i < n && good; i++)
        good = is_number(fields->u.item[i], most[i]);
    if (!good) {
        unpickle_fail(u, TENREC_EPROTOCOL, "a remote reference needs six ids and a type");
        return NULL;
    }
    o = unpickle_new(u, PY_RREF);
    for (uint32_t i = 0; i <= n; i++)
        unpickle_append(u, o, fields->u.item[i]);
    return o;
}

/* getattr(_InternalRPCPickler, name) */
static bool is_receiver(const struct pyobject *callable, const struct pyobject *args,
                        const char *name)
{
    return pyobject_is_global(callable, "builtins", "getattr") && args->n == 2 &&
           pyobject_is_global(args->u.item[0], PY_INTERNAL, "_InternalRPCPickler") &&
           pyobject_is_text(args->u.item[1], name);
}

/* torch._utils._rebuild_parameter(tensor, requires_grad, hooks): an nn.Parameter */
static bool is_parameter(const struct pyobject *callable, const struct pyobject *args)
{
    return pyobject_is_global(callable, "torch._utils", "_rebuild_parameter") && args->n == 3 &&
           args->u.item[0]->kind == PY_TENSOR;
}

/* torch.Size((2, 3)) */
static bool is_size(const struct pyobject *callable, const struct pyobject *args)
{
    return pyobject_is_global(callable, "torch", "Size") && args->n == 1 &&
           args->u.item[0]->kind == PY_TUPLE;
}

/* collections.OrderedDict(): its items follow, as those of a dict do. */
static bool is_ordered_dict(const struct pyobject *callable, const struct pyobject *args)
{
    return pyobject_is_global(callable, "collections", "OrderedDict") && args->n == 0;
}

struct pyobject *unpickle_reduce(struct unpickle *u, struct pyobject *callable,
                                 struct pyobject *args)
{
    /* They give their first argument, with a type that plain values do without. */
    static const struct known_class same[] = { { PY_JIT, "build_intlist" },
                                               { PY_JIT, "build_doublelist" },
                                               { PY_JIT, "build_boollist" },
                                               { PY_JIT, "build_tensorlist" },
                                               { PY_JIT, "restore_type_tag" } };
    static const struct known_class inert[] = { { "torch", "device" } };

    if (u->status != TENREC_OK || !callable || !args)
        return NULL;
    if (args->kind != PY_TUPLE)
        unpickle_fail(u, TENREC_EPROTOCOL, "a call needs a tuple");
    else if (callable->kind == PY_RECEIVER ||
             pyobject_is_global(callable, PY_JIT, "build_tensor_from_id"))
        return tensor_new(u, args);
    else if (callable->kind == PY_RREF_RECEIVER && args->n == 1)
        return rref_new(u, args->u.item[0]);
    else if (pyobject_is_global(callable, "torch.distributed.rpc", "rref"))
        return rref_new(u, args);
    else if (is_receiver(callable, args, "_tensor_receiver"))
        return unpickle_new(u, PY_RECEIVER);
    else if (is_receiver(callable, args, "_py_rref_receiver"))
        return unpickle_new(u, PY_RREF_RECEIVER);
    else if ((is_one_of(callable, same, sizeof same / sizeof *same) && args->n > 0) ||
             is_parameter(callable, args) || is_size(callable, args))
        return args->u.item[0];
    else if (is_ordered_dict(callable, args))
        return unpickle_new(u, PY_DICT);
    else if (is_one_of(callable, inert, sizeof inert / sizeof *inert))
        return object_new(u, callable, args);
    else
        refuse_call(u, callable);
    return NULL;
}

struct pyobject *unpickle_instance(struct unpickle *u, struct pyobject *class,
                                   struct pyobject *args)
{
    static const struct known_class known[] = { { PY_INTERNAL, "PythonUDF" },
                                                { PY_INTERNAL, "RemoteException" },
                                                { PY_RPC, "WorkerInfo" } };

    if (u->status != TENREC_OK || !class || !args)
        return NULL;
    if (args->kind != PY_TUPLE)
        unpickle_fail(u, TENREC_EPROTOCOL, "an object needs a tuple");
    else if (is_one_of(class, known, sizeof known / sizeof *known))
        return object_new(u, class, args);
    else
        refuse_call(u, class);
    return NULL;
}

/* What state_dict() sets beside its items: the versions of modules, which are no values. */
static bool is_metadata(const struct pyobject *o, const struct pyobject *state)
{
    return o->kind == PY_DICT && state->kind == PY_DICT && state->n == 2 &&
           pyobject_is_text(state->u.item[0], "_metadata");
}

void unpickle_build(struct unpickle *u, struct pyobject *o, struct pyobject *state)
{
    if (u->status != TENREC_OK || !o || !state || is_metadata(o, state))
        return;
    if (!pyobject_is(o, PY_RPC, "WorkerInfo", 0) || state->kind != PY_TUPLE || state->n != 2)
        unpickle_fail(u, TENREC_EUNSUPPORTED,
                      "it sets the state of something else than a WorkerInfo or a state_dict");
    for (uint32_t i = 0; i < state->n && u->status == TENREC_OK; i++)
        unpickle_append(u, o, state->u.item[i]);
}
