/* SPDX-License-Identifier: Apache-2.0 */
#include "torch_member/pyobject_value.h"

#include "torch_member/references.h"

#include <stdlib.h>

/* A conversion. A pickle may hold one list at many places, so its values are counted again. */
struct convert {
    struct arena *arena;
    struct tenrec_tensor *const *tensor;
    size_t n_tensors;
    struct arrivals *refs;
    uint32_t n;
    tenrec_error *err;
};

static tenrec_status convert_one(struct convert *c, const struct pyobject *o, unsigned depth,
                                 struct tenrec_value *ret);

/* A text with a NUL behind it. */
static tenrec_status convert_text(struct convert *c, const struct pyobject *o, const char **ret)
{
    char *text = arena_new(c->arena, o->u.text.len + 1, 1);

    if (!text)
        return tenrec_fail(c->err, TENREC_ENOMEM, "no memory for its texts");
    memcpy(text, o->u.text.data, o->u.text.len);
    *ret = text;
    return TENREC_OK;
}

static tenrec_status convert_items(struct convert *c, struct pyobject *const *o, uint32_t n,
                                   unsigned depth, const struct tenrec_value **ret)
{
    struct tenrec_value *item = arena_new(c->arena, n ? n : 1, sizeof *item);
    tenrec_status st = TENREC_OK;

    if (!item)
        return tenrec_fail(c->err, TENREC_ENOMEM, "no memory for its values");
    for (uint32_t i = 0; i < n && st == TENREC_OK; i++)
        st = convert_one(c, o[i], depth, &item[i]);
    *ret = item;
    return st;
}

static tenrec_status convert_dict(struct convert *c, const struct pyobject *o, unsigned depth,
                                  struct tenrec_value *ret)
{
    struct tenrec_entry *entry = arena_new(c->arena, o->n / 2 + 1, sizeof *entry);
    tenrec_status st = TENREC_OK;

    if (!entry)
        return tenrec_fail(c->err, TENREC_ENOMEM, "no memory for its values");
    for (size_t i = 0; i < o->n / 2 && st == TENREC_OK; i++) {
        if (o->u.item[2 * i]->kind != PY_TEXT)
            return tenrec_fail(c->err, TENREC_EUNSUPPORTED,
                               "a dict with a key that is no text cannot be a map");
        st = convert_text(c, o->u.item[2 * i], &entry[i].key);
        if (st == TENREC_OK)
            st = convert_one(c, o->u.item[2 * i + 1], depth, &entry[i].value);
    }
    *ret = tenrec_value_map(entry, o->n / 2);
    return st;
}

static tenrec_status convert_tensor(struct convert *c, int64_t at, struct tenrec_value *ret)
{
    if ((uint64_t)at >= c->n_tensors)
        return tenrec_fail(c->err, TENREC_EPROTOCOL, "tensor %lld of a message with %zu",
                           (long long)at, c->n_tensors);
    *ret = tenrec_value_tensor(c->tensor[at]);
    return TENREC_OK;
}

static tenrec_status convert_rref(struct convert *c, const struct pyobject *o,
                                  struct tenrec_value *ret)
{
    struct pyobject *const *field = o->u.item;
    const struct rref_fork f = { .owner = (tenrec_peer)field[0]->u.integer,
                                 .id = { field[1]->u.integer, field[2]->u.integer },
                                 .fork = { field[3]->u.integer, field[4]->u.integer },
                                 .parent = (tenrec_peer)field[5]->u.integer };
    struct tenrec_rref *r;
    tenrec_status st = c->refs ? arrivals_add(c->refs, &f, field[6]->u.text, &r, c->err)
                               : tenrec_fail(c->err, TENREC_EUNSUPPORTED,
                                             "a remote reference cannot be received here");

    if (st == TENREC_OK)
        *ret = tenrec_value_rref(r);
    return st;
}

static tenrec_status convert_one(struct convert *c, const struct pyobject *o, unsigned depth,
                                 struct tenrec_value *ret)
{
    const char *text = "";
    tenrec_status st;

    if (depth > PYOBJECT_DEPTH_MAX || ++c->n > PYOBJECT_MAX)
        return tenrec_fail(c->err, TENREC_ETOOBIG, "more than %u values, or nested deeper than %d",
                           PYOBJECT_MAX, PYOBJECT_DEPTH_MAX);
    switch (o->kind) {
    case PY_NONE:
        *ret = tenrec_value_nil();
        return TENREC_OK;
    case PY_BOOL:
        *ret = tenrec_value_bool(o->u.boolean);
        return TENREC_OK;
    case PY_INT:
        *ret = tenrec_value_int(o->u.integer);
        return TENREC_OK;
    case PY_FLOAT:
        *ret = tenrec_value_double(o->u.number);
        return TENREC_OK;
    case PY_TEXT:
        st = convert_text(c, o, &text);
        *ret = tenrec_value_of(TENREC_VALUE_TEXT, o->u.text.len);
        ret->u.text = text;
        return st;
    case PY_BYTES:
        *ret = tenrec_value_bytes(o->u.text.data, o->u.text.len);
        return TENREC_OK;
    case PY_LIST:
    case PY_TUPLE:
        *ret = tenrec_value_of(TENREC_VALUE_ARRAY, o->n);
        return convert_items(c, o->u.item, o->n, depth + 1, &ret->u.array);
    case PY_DICT:
        return convert_dict(c, o, depth + 1, ret);
    case PY_TENSOR:
        return convert_tensor(c, o->u.integer, ret);
    case PY_RREF:
        return convert_rref(c, o, ret);
    case PY_GLOBAL:
    case PY_OBJECT:
    case PY_RECEIVER:
    case PY_RREF_RECEIVER:
        break;
    }
    return tenrec_fail(c->err, TENREC_EUNSUPPORTED,
                       "a function, a class or an object of Python cannot be a value");
}

tenrec_status pyobject_value(const struct pyobject *o, struct arena *arena,
                             struct tenrec_tensor *const *tensor, size_t n_tensors,
                             struct arrivals *refs, struct tenrec_value *ret, tenrec_error *err)
{
    struct convert c = { arena, tensor, n_tensors, refs, 0, err };

    return convert_one(&c, o, 0, ret);
}

tenrec_status pyobject_values(struct pyobject *const *o, uint32_t n, struct arena *arena,
                              struct tenrec_tensor *const *tensor, size_t n_tensors,
                              struct arrivals *refs, const struct tenrec_value **ret,
                              tenrec_error *err)
{
    struct convert c = { arena, tensor, n_tensors, refs, 0, err };

    return convert_items(&c, o, n, 0, ret);
}
