/* SPDX-License-Identifier: Apache-2.0 */
#include "torch/member/pyobject.h"

#include "torch/member/references.h"

#include <stdlib.h>

/* A conversion. A pickle may hold one object at many places, and the value has it as often: so
 * values are counted again, and their texts, too. These are not copied here, but by whatever copies
 * or writes the value. */
struct convert {
    struct arena *arena;
    const struct pyobject_source *from;
    size_t bytes; /* of the value */
    uint32_t n;
    tenrec_error *err;
};

static tenrec_status convert_one(struct convert *c, const struct pyobject *o, unsigned depth,
                                 struct tenrec_value *ret);

static tenrec_status convert_charge(struct convert *c, size_t bytes)
{
    const size_t most = pyobject_budget(c->from->bytes);

    if (bytes > most - c->bytes)
        return tenrec_fail(c->err, TENREC_ETOOBIG,
                           "the values of a pickle of %zu bytes take more than %zu bytes",
                           c->from->bytes, most);
    c->bytes += bytes;
    return TENREC_OK;
}

/* An array of `n` values or entries, and one more. */
static tenrec_status convert_room(struct convert *c, size_t n, size_t size, void *ret)
{
    const tenrec_status st = convert_charge(c, (n + 1) * size);
    void *made = st == TENREC_OK ? arena_new(c->arena, n + 1, size) : NULL;

    if (st == TENREC_OK && !made)
        return tenrec_fail(c->err, TENREC_ENOMEM, "no memory for its values");
    memcpy(ret, &made, sizeof made);
    return st;
}

static tenrec_status convert_text(struct convert *c, const struct pyobject *o, const char **ret)
{
    *ret = (const char *)o->u.text.data;
    return convert_charge(c, o->u.text.len);
}

static tenrec_status convert_items(struct convert *c, struct pyobject *const *o, uint32_t n,
                                   unsigned depth, const struct tenrec_value **ret)
{
    struct tenrec_value *item = NULL;
    tenrec_status st = convert_room(c, n, sizeof *item, &item);

    for (uint32_t i = 0; i < n && st == TENREC_OK; i++)
        st = convert_one(c, o[i], depth, &item[i]);
    *ret = item;
    return st;
}

static tenrec_status convert_dict(struct convert *c, const struct pyobject *o, unsigned depth,
                                  struct tenrec_value *ret)
{
    struct tenrec_entry *entry = NULL;
    tenrec_status st = convert_room(c, o->n / 2, sizeof *entry, &entry);

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
    if ((uint64_t)at >= c->from->n_tensors)
        return tenrec_fail(c->err, TENREC_EPROTOCOL, "tensor %lld of a message with %zu",
                           (long long)at, c->from->n_tensors);
    *ret = tenrec_value_tensor(c->from->tensor[at]);
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
    tenrec_status st = c->from->refs ? arrivals_add(c->from->refs, &f, field[6]->u.text, &r, c->err)
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
        return convert_charge(c, o->u.text.len);
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
                             const struct pyobject_source *from, struct tenrec_value *ret,
                             tenrec_error *err)
{
    struct convert c = { .arena = arena, .from = from, .err = err };

    return convert_one(&c, o, 0, ret);
}

tenrec_status pyobject_values(struct pyobject *const *o, uint32_t n, struct arena *arena,
                              const struct pyobject_source *from, const struct tenrec_value **ret,
                              tenrec_error *err)
{
    struct convert c = { .arena = arena, .from = from, .err = err };

    return convert_items(&c, o, n, 0, ret);
}
