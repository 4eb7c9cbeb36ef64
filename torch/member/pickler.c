/* SPDX-License-Identifier: Apache-2.0 */
#include "torch/member/pickler.h"

#include "core/base/fail.h"
#include "core/base/memory.h"
#include "torch/member/pyobject.h"
#include "torch/member/references.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/chain.h>

/* Keeps the first failure. */
TENREC_PRINTF(3, 4)
static void pickler_fail(struct pickler *p, tenrec_status code, const char *fmt, ...)
{
    va_list ap;

    if (p->status != TENREC_OK)
        return;
    p->status = code;
    va_start(ap, fmt);
    tenrec_vfail(&p->why, code, fmt, ap);
    va_end(ap);
}

/* ---- operations --------------------------------------------------------------------- */

void pickler_begin(struct pickler *p)
{
    bytes_add_u8(&p->out, 0x80);
    bytes_add_u8(&p->out, p->jit ? 2 : 3);
}

void pickler_end(struct pickler *p)
{
    pickler_op(p, '.');
}

void pickler_op(struct pickler *p, char op)
{
    bytes_add_u8(&p->out, (uint8_t)op);
}

void pickler_int(struct pickler *p, int64_t v)
{
    if (v >= 0 && v < 256) {
        pickler_op(p, 'K');
        bytes_add_u8(&p->out, (uint8_t)v);
    } else if (v >= INT32_MIN && v <= INT32_MAX) {
        pickler_op(p, 'J');
        bytes_add_u32(&p->out, (uint32_t)v);
    } else {
        bytes_add_u8(&p->out, 0x8a);
        bytes_add_u8(&p->out, 8);
        bytes_add_u64(&p->out, (uint64_t)v);
    }
}

void pickler_bool(struct pickler *p, bool v)
{
    bytes_add_u8(&p->out, v ? 0x88 : 0x89);
}

static void pickler_double(struct pickler *p, double v)
{
    uint64_t raw;

    memcpy(&raw, &v, sizeof raw);
    pickler_op(p, 'G');
    for (int i = 7; i >= 0; i--)
        bytes_add_u8(&p->out, (uint8_t)(raw >> 8 * i));
}

static void pickler_blob(struct pickler *p, char op, const void *data, size_t len)
{
    if (len > UINT32_MAX) {
        pickler_fail(p, TENREC_ETOOBIG, "a text of more than 4 GiB");
        return;
    }
    pickler_op(p, op);
    bytes_add_u32(&p->out, (uint32_t)len);
    bytes_add(&p->out, data, len);
}

void pickler_text(struct pickler *p, const char *text, size_t len)
{
    pickler_blob(p, 'X', text, len);
}

void pickler_global(struct pickler *p, const char *module, size_t len, const char *name)
{
    pickler_op(p, 'c');
    bytes_add(&p->out, module, len);
    pickler_op(p, '\n');
    bytes_add(&p->out, name, strlen(name));
    pickler_op(p, '\n');
}

static void pickler_name(struct pickler *p, const char *module, const char *name)
{
    pickler_global(p, module, strlen(module), name);
}

/* ---- values --------------------------------------------------------------------------- */

static void write_value(struct pickler *p, const struct tenrec_value *v, unsigned depth);

/* A function of torch's pickler class. */
static void pickler_getattr(struct pickler *p, const char *name)
{
    pickler_name(p, "builtins", "getattr");
    pickler_name(p, PY_INTERNAL, "_InternalRPCPickler");
    pickler_text(p, name, strlen(name));
    bytes_add_u8(&p->out, 0x86);
    pickler_op(p, 'R');
}

/* A call of the function that torch's reader knows, with the place of the tensor. */
static void pickler_tensor(struct pickler *p, struct tenrec_tensor *t)
{
    struct tenrec_tensor **grown =
        memory_grow(p->tensor, p->n_tensors, &p->room, sizeof(struct tenrec_tensor *));

    if (!grown) {
        pickler_fail(p, TENREC_ENOMEM, "no memory for its tensors");
        return;
    }
    p->tensor = grown;
    p->tensor[p->n_tensors] = tenrec_tensor_share(t);
    if (p->jit) {
        pickler_name(p, PY_JIT, "build_tensor_from_id");
    } else {
        pickler_getattr(p, "_tensor_receiver");
    }
    pickler_int(p, (int64_t)p->n_tensors++);
    bytes_add_u8(&p->out, 0x85);
    pickler_op(p, 'R');
}

/* A fork of a reference: owner, its id, the fork's, this worker, the type of the value. */
static void pickler_rref(struct pickler *p, struct tenrec_rref *r)
{
    char type[REFERENCE_TYPE_MAX + 1];
    struct rref_fork f;

    if (!p->refs) {
        pickler_fail(p, TENREC_EUNSUPPORTED, "a remote reference cannot be sent here");
        return;
    }
    if (outgoing_add(p->refs, r, &f, type, &p->why) != TENREC_OK) {
        p->status = p->why.code;
        return;
    }
    if (p->jit) {
        pickler_name(p, "torch.distributed.rpc", "rref");
    } else {
        pickler_getattr(p, "_py_rref_receiver");
        pickler_op(p, '(');
    }
    pickler_op(p, '(');
    pickler_int(p, f.owner);
    pickler_int(p, f.id.on);
    pickler_int(p, f.id.local);
    pickler_int(p, f.fork.on);
    pickler_int(p, f.fork.local);
    pickler_int(p, f.parent);
    pickler_text(p, type, strlen(type));
    pickler_op(p, 't');
    if (!p->jit)
        pickler_op(p, 't');
    pickler_op(p, 'R');
}

/* The function that makes a typed list of such items in TorchScript; NULL: a list of any. */
static const char *list_function(const struct tenrec_value *v)
{
    static const struct {
        uint32_t type;
        const char *name;
    } known[] = { { TENREC_VALUE_INT, "build_intlist" },
                  { TENREC_VALUE_DOUBLE, "build_doublelist" },
                  { TENREC_VALUE_BOOL, "build_boollist" },
                  { TENREC_VALUE_TENSOR, "build_tensorlist" } };

    for (size_t k = 0; v->n > 0 && k < sizeof known / sizeof *known; k++) {
        uint64_t same = 0;

        while (same < v->n && v->u.array[same].type == known[k].type)
            same++;
        if (same == v->n)
            return known[k].name;
    }
    return NULL;
}

static void write_array(struct pickler *p, const struct tenrec_value *v, unsigned depth)
{
    const char *function = p->jit ? list_function(v) : NULL;

    if (function) {
        pickler_name(p, PY_JIT, function);
        pickler_op(p, '(');
    }
    pickler_op(p, ']');
    pickler_op(p, '(');
    for (uint64_t i = 0; i < v->n && p->status == TENREC_OK; i++)
        write_value(p, &v->u.array[i], depth + 1);
    pickler_op(p, 'e');
    if (function) {
        pickler_op(p, 't');
        pickler_op(p, 'R');
    }
}

static void write_map(struct pickler *p, const struct tenrec_value *v, unsigned depth)
{
    pickler_op(p, '}');
    pickler_op(p, '(');
    for (uint64_t i = 0; i < v->n && p->status == TENREC_OK; i++) {
        pickler_text(p, v->u.map[i].key, strlen(v->u.map[i].key));
        write_value(p, &v->u.map[i].value, depth + 1);
    }
    pickler_op(p, 'u');
}

static void write_value(struct pickler *p, const struct tenrec_value *v, unsigned depth)
{
    if (depth > PYOBJECT_DEPTH_MAX) {
        pickler_fail(p, TENREC_EINVAL, "nested deeper than %d", PYOBJECT_DEPTH_MAX);
        return;
    }
    switch (v->type) {
    case TENREC_VALUE_NIL:
        pickler_op(p, 'N');
        return;
    case TENREC_VALUE_BOOL:
        pickler_bool(p, v->u.boolean);
        return;
    case TENREC_VALUE_INT:
        pickler_int(p, v->u.integer);
        return;
    case TENREC_VALUE_DOUBLE:
        pickler_double(p, v->u.number);
        return;
    case TENREC_VALUE_TEXT:
        pickler_text(p, v->u.text, v->n);
        return;
    case TENREC_VALUE_ARRAY:
        write_array(p, v, depth);
        return;
    case TENREC_VALUE_MAP:
        write_map(p, v, depth);
        return;
    case TENREC_VALUE_TENSOR:
        pickler_tensor(p, v->u.tensor);
        return;
    case TENREC_VALUE_RREF:
        pickler_rref(p, v->u.rref);
        return;
    case TENREC_VALUE_BYTES:
        if (!p->jit) {
            pickler_blob(p, 'B', v->u.bytes, v->n);
            return;
        }
        break;
    default:
        break;
    }
    pickler_fail(p, TENREC_EUNSUPPORTED, "torch's %s takes no %s",
                 p->jit ? "operators and TorchScript" : "RPC", tenrec_value_type_name(v->type));
}

void pickler_value(struct pickler *p, const struct tenrec_value *v)
{
    write_value(p, v, 0);
}

void pickler_tuple(struct pickler *p, const struct tenrec_value *v, size_t n)
{
    pickler_op(p, '(');
    for (size_t i = 0; i < n && p->status == TENREC_OK; i++)
        write_value(p, &v[i], 0);
    pickler_op(p, 't');
}

void pickler_call_begin(struct pickler *p, const char *module, size_t len, const char *name)
{
    bytes_add_u8(&p->out, 0); /* the function returns a value, not a future */
    pickler_udf_begin(p, module, len, name);
}

void pickler_udf_begin(struct pickler *p, const char *module, size_t len, const char *name)
{
    pickler_begin(p);
    pickler_name(p, PY_INTERNAL, "PythonUDF");
    pickler_op(p, '(');
    pickler_global(p, module, len, name);
}

void pickler_call_end(struct pickler *p)
{
    pickler_op(p, '}'); /* no keyword arguments */
    pickler_op(p, 't');
    bytes_add_u8(&p->out, 0x81);
    pickler_end(p);
}

void pickler_rref_id(struct pickler *p, struct rref_id id)
{
    pickler_int(p, id.on);
    pickler_int(p, id.local);
    bytes_add_u8(&p->out, 0x86);
}

void pickler_nest(struct pickler *p, struct pickler *inner)
{
    for (size_t i = 0; i < inner->n_tensors; i++)
        pickler_tensor(p, inner->tensor[i]);
    if (inner->status != TENREC_OK && p->status == TENREC_OK) {
        p->status = inner->status;
        p->why = inner->why;
    }
    p->out.failed = p->out.failed || inner->out.failed;
    pickler_text(p, (const char *)inner->out.data, inner->out.len);
    pickler_finish(inner);
}

void pickler_worker_info(struct pickler *p, const char *name, int64_t id)
{
    pickler_name(p, PY_RPC, "WorkerInfo");
    pickler_op(p, ')');
    bytes_add_u8(&p->out, 0x81);
    pickler_text(p, name, strlen(name));
    pickler_int(p, id);
    bytes_add_u8(&p->out, 0x86);
    pickler_op(p, 'b');
}

/* ---- the message -------------------------------------------------------------------------- */

void pickler_finish(struct pickler *p)
{
    for (size_t i = 0; i < p->n_tensors; i++)
        tenrec_tensor_drop(p->tensor[i]);
    free(p->tensor);
    bytes_free(&p->out);
    *p = (struct pickler){ .jit = p->jit, .refs = p->refs };
}

tenrec_status pickler_message(struct pickler *p, int32_t type, struct tenrec_msg **ret,
                              tenrec_error *err)
{
    struct tenrec_msg *msg = NULL;
    tenrec_status st = p->status;

    if (st != TENREC_OK)
        fail_with(err, &p->why);
    else if (p->out.failed || p->n_tensors > UINT32_MAX ||
             !(msg = tenrec_msg_new(p->out.len, (uint32_t)p->n_tensors)))
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for a message");
    if (st == TENREC_OK) {
        msg->type = type;
        memcpy(msg->payload, p->out.data, p->out.len);
        for (size_t i = 0; i < p->n_tensors; i++)
            tenrec_msg_set_tensor(msg, (uint32_t)i, p->tensor[i]);
        p->n_tensors = 0; /* taken */
        *ret = msg;
    }
    pickler_finish(p);
    return st;
}
