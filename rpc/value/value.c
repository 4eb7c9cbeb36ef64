/* SPDX-License-Identifier: Apache-2.0 */
/* value.c - names of values, deep copies. */
#include <tenrec/value.h>

#include <stdlib.h>

#include <tenrec/region.h>
#include <tenrec/rref.h>

#include "rpc/value/value.h"
#include "rpc/value/value_block.h"

const char *tenrec_value_type_name(uint32_t type)
{
    static const char *const names[] = {
        [TENREC_VALUE_NIL] = "nil",          [TENREC_VALUE_BOOL] = "a boolean",
        [TENREC_VALUE_INT] = "an integer",   [TENREC_VALUE_DOUBLE] = "a number",
        [TENREC_VALUE_TEXT] = "text",        [TENREC_VALUE_BYTES] = "bytes",
        [TENREC_VALUE_ARRAY] = "an array",   [TENREC_VALUE_MAP] = "a map",
        [TENREC_VALUE_TENSOR] = "a tensor",  [TENREC_VALUE_RREF] = "a remote reference",
        [TENREC_VALUE_OBJECT] = "an object", [TENREC_VALUE_REGION] = "a region",
    };

    return type < sizeof names / sizeof *names ? names[type] : "of an unknown type";
}

const struct tenrec_value *tenrec_value_find(const struct tenrec_value *map, const char *key)
{
    if (!map || map->type != TENREC_VALUE_MAP)
        return NULL;
    for (uint64_t i = 0; i < map->n; i++)
        if (strcmp(map->u.map[i].key, key) == 0)
            return &map->u.map[i].value;
    return NULL;
}

tenrec_status value_refuse_flags(const struct tenrec_value *v, tenrec_error *err)
{
    return tenrec_fail(
        err, TENREC_EINVAL,
        "%s has the unknown flags 0x%x, expected 0 (use the tenrec_value_ functions)",
        tenrec_value_type_name(v->type), v->flags);
}

tenrec_status value_refuse_null(const struct tenrec_value *v, tenrec_error *err)
{
    return tenrec_fail(err, TENREC_EINVAL, "%s of %llu bytes or items is NULL",
                       tenrec_value_type_name(v->type), (unsigned long long)v->n);
}

tenrec_status value_refuse_key(uint64_t i, tenrec_error *err)
{
    return tenrec_fail(err, TENREC_EINVAL, "key %llu of a map is NULL", (unsigned long long)i);
}

tenrec_status value_check_region(const struct tenrec_value *v, tenrec_error *err)
{
    const struct tenrec_region_ref *r = v->u.region;

    if (!r)
        return tenrec_fail(err, TENREC_EINVAL, "a region is NULL");
    if (r->size < sizeof *r)
        return tenrec_fail(err, TENREC_EINVAL, "a region has the size %u, expected %zu", r->size,
                           sizeof *r);
    if (!r->owner[0] || !memchr(r->owner, '\0', sizeof r->owner))
        return tenrec_fail(err, TENREC_EINVAL, "a region has no name of an owner");
    return TENREC_OK;
}

/* ---- copies ---------------------------------------------------------------- */

static tenrec_status count_value(const struct tenrec_value *v, int depth,
                                 struct value_block_size *size, tenrec_error *err)
{
    tenrec_status status = TENREC_OK;

    if (depth > VALUE_DEPTH)
        return tenrec_fail(err, TENREC_EINVAL, "values are nested deeper than %d", VALUE_DEPTH);
    if (v->flags)
        return value_refuse_flags(v, err);
    if (v->type >= TENREC_VALUE_TEXT && v->type <= TENREC_VALUE_MAP && !v->u.bytes && v->n)
        return value_refuse_null(v, err);
    switch (v->type) {
    case TENREC_VALUE_NIL:
    case TENREC_VALUE_BOOL:
    case TENREC_VALUE_INT:
    case TENREC_VALUE_DOUBLE:
        break;
    case TENREC_VALUE_TENSOR:
    case TENREC_VALUE_RREF:
    case TENREC_VALUE_OBJECT:
        size->tensors = true;
        break;
    case TENREC_VALUE_TEXT:
        size->text += (size_t)v->n + 1;
        break;
    case TENREC_VALUE_BYTES:
        size->text += (size_t)v->n;
        break;
    case TENREC_VALUE_ARRAY:
        size->items += (size_t)v->n * sizeof *v;
        for (uint64_t i = 0; i < v->n && !status; i++)
            status = count_value(&v->u.array[i], depth + 1, size, err);
        break;
    case TENREC_VALUE_MAP:
        size->items += (size_t)v->n * sizeof *v->u.map;
        for (uint64_t i = 0; i < v->n && !status; i++) {
            if (!v->u.map[i].key)
                return value_refuse_key(i, err);
            size->text += strlen(v->u.map[i].key) + 1;
            status = count_value(&v->u.map[i].value, depth + 1, size, err);
        }
        break;
    case TENREC_VALUE_REGION:
        size->items += sizeof *v->u.region;
        status = value_check_region(v, err);
        break;
    default:
        status = tenrec_fail(err, TENREC_EINVAL, "value has the unknown type %u", v->type);
    }
    return status;
}

static void copy_value(const struct tenrec_value *v, struct value_block *a, struct tenrec_value *to)
{
    struct tenrec_value *items;
    struct tenrec_region_ref *ref;
    struct tenrec_entry *entries;

    *to = *v;
    switch (v->type) {
    case TENREC_VALUE_TEXT:
        to->u.text = value_block_text(a, v->u.text, (size_t)v->n, true);
        break;
    case TENREC_VALUE_BYTES:
        to->u.bytes = value_block_text(a, v->u.bytes, (size_t)v->n, false);
        break;
    case TENREC_VALUE_ARRAY:
        to->u.array = items = value_block_items(a, (size_t)v->n, sizeof *items);
        for (uint64_t i = 0; i < v->n; i++)
            copy_value(&v->u.array[i], a, &items[i]);
        break;
    case TENREC_VALUE_MAP:
        to->u.map = entries = value_block_items(a, (size_t)v->n, sizeof *entries);
        for (uint64_t i = 0; i < v->n; i++) {
            const char *key = v->u.map[i].key;
            entries[i].key = value_block_text(a, key, strlen(key), true);
            copy_value(&v->u.map[i].value, a, &entries[i].value);
        }
        break;
    case TENREC_VALUE_TENSOR:
        if (to->u.tensor)
            tenrec_tensor_share(to->u.tensor);
        break;
    case TENREC_VALUE_RREF:
        if (to->u.rref)
            handle_ops_of(to->u.rref)->share(to->u.rref);
        break;
    case TENREC_VALUE_OBJECT:
        if (to->u.object)
            tenrec_object_share(to->u.object);
        break;
    case TENREC_VALUE_REGION:
        to->u.region = ref = value_block_items(a, 1, sizeof *ref);
        *ref = *v->u.region;
        ref->size = sizeof *ref; /* a newer program has more members */
        break;
    default:
        break;
    }
}

tenrec_status tenrec_value_copy(const struct tenrec_value *v, struct tenrec_value **ret,
                                tenrec_error *err)
{
    struct value_block_size size = { .items = sizeof *v };
    tenrec_status status = count_value(v, 1, &size, err);
    struct tenrec_value *root;
    struct value_block a;

    *ret = NULL;
    if (status)
        return status;
    root = malloc(size.items + size.text);
    if (!root)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a value of %zu bytes",
                           size.items + size.text);
    a = value_block_at(root, &size);
    copy_value(v, &a, value_block_items(&a, 1, sizeof *root));
    *ret = root;
    return TENREC_OK;
}

/* An untaken reference holds no handle, and an untaken object only an encoded value. */
static void finish_ref(const struct tenrec_value *v)
{
    const bool untaken = v->flags & CODEC_UNTAKEN;

    if (v->type == TENREC_VALUE_RREF && !untaken && v->u.rref)
        handle_ops_of(v->u.rref)->drop(v->u.rref);
    else if (v->type == TENREC_VALUE_OBJECT && !untaken)
        tenrec_object_drop(v->u.object);
    else if (v->type == TENREC_VALUE_OBJECT)
        values_finish(&v->u.map->value, 1);
}

void values_finish(const struct tenrec_value *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (v[i].type == TENREC_VALUE_TENSOR)
            tenrec_tensor_drop(v[i].u.tensor);
        else if (v[i].type >= TENREC_VALUE_RREF)
            finish_ref(&v[i]);
        else if (v[i].type == TENREC_VALUE_ARRAY)
            values_finish(v[i].u.array, (size_t)v[i].n);
        else if (v[i].type == TENREC_VALUE_MAP)
            for (uint64_t k = 0; k < v[i].n; k++)
                values_finish(&v[i].u.map[k].value, 1);
    }
}

void tenrec_value_drop(struct tenrec_value *v)
{
    if (!v)
        return;
    values_finish(v, 1);
    free(v);
}

bool value_has_handles(const struct tenrec_value *v)
{
    bool found = v->type == TENREC_VALUE_RREF || v->type == TENREC_VALUE_OBJECT;

    for (uint64_t i = 0; v->type == TENREC_VALUE_ARRAY && v->u.array && i < v->n && !found; i++)
        found = value_has_handles(&v->u.array[i]);
    for (uint64_t i = 0; v->type == TENREC_VALUE_MAP && v->u.map && i < v->n && !found; i++)
        found = value_has_handles(&v->u.map[i].value);
    return found;
}
