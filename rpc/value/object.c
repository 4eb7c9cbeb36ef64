/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/value/value.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "core/base/forks.h"
#include "core/base/hash.h"
#include "core/base/memory.h"

struct tenrec_object {
    atomic_uint refs;
    const struct tenrec_object_type *type;
    void *data;
};

static tenrec_status check_type(const struct tenrec_object_type *type, tenrec_error *err)
{
    size_t len;

    if (!type || type->size < sizeof *type)
        return tenrec_fail(err, TENREC_EINVAL, "object type: size is not set to sizeof");
    len = type->name ? strlen(type->name) : 0;
    if (len == 0 || len > TENREC_NAME_MAX)
        return tenrec_fail(err, TENREC_EINVAL, "object type: a name has 1 to %d bytes, got %zu",
                           TENREC_NAME_MAX, len);
    if (!type->encode != !type->decode)
        return tenrec_fail(err, TENREC_EINVAL,
                           "object type '%s': set both encode and decode, or none", type->name);
    return TENREC_OK;
}

static void object_free_data(const struct tenrec_object_type *type, void *data)
{
    const uint32_t forks = forks_seen;

    if (!type->free_fn)
        return;
    type->free_fn(data, type->arg);
    forks_check(forks, "the free function of an object");
}

tenrec_status tenrec_object_new(const struct tenrec_object_type *type, void *data,
                                struct tenrec_object **ret, tenrec_error *err)
{
    tenrec_status st = check_type(type, err);
    struct tenrec_object *o;

    *ret = NULL;
    if (st != TENREC_OK)
        return st;
    o = memory_new(1, sizeof *o);
    if (!o)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for an object");
    atomic_init(&o->refs, 1);
    o->type = type;
    o->data = data;
    *ret = o;
    return TENREC_OK;
}

struct tenrec_object *tenrec_object_share(struct tenrec_object *o)
{
    atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
    return o;
}

void tenrec_object_drop(struct tenrec_object *o)
{
    if (!o || atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) != 1)
        return;
    object_free_data(o->type, o->data);
    free(o);
}

void *tenrec_object_data(const struct tenrec_object *o, const struct tenrec_object_type *type)
{
    return o && o->type == type ? o->data : NULL;
}

tenrec_status tenrec_object_get(const struct tenrec_value *v, const struct tenrec_object_type *type,
                                void **ret, tenrec_error *err)
{
    *ret = NULL;
    if (v->type != TENREC_VALUE_OBJECT)
        return tenrec_fail(err, TENREC_EINVAL, "the value is %s, expected an object of type '%s'",
                           tenrec_value_type_name(v->type), type->name);
    if (v->u.object->type != type)
        return tenrec_fail(err, TENREC_EINVAL,
                           "the value is an object of type '%s', expected type '%s'",
                           v->u.object->type->name, type->name);
    *ret = v->u.object->data;
    return TENREC_OK;
}

/* ---- on the wire ----------------------------------------------------------------- */

tenrec_status object_encode(const struct tenrec_object *o, struct tenrec_value **ret,
                            const char **ret_type, tenrec_error *err)
{
    const struct tenrec_object_type *type = o->type;
    const uint32_t forks = forks_seen;
    tenrec_status st;

    if (!type->encode)
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "cannot send objects of type '%s': the type has no encode", type->name);
    st = type->encode(o->data, type->arg, ret, err);
    forks_check(forks, "the encode function of an object");
    if (st != TENREC_OK)
        tenrec_error_prefix(err, "object of type '%s'", type->name);
    *ret_type = type->name;
    return st;
}

struct object_type_entry {
    const struct tenrec_object_type *type; /* borrowed */
    UT_hash_handle hh;
};

void object_types_init(struct object_types *t)
{
    t->table = NULL;
    pthread_mutex_init(&t->lock, NULL);
}

void object_types_finish(struct object_types *t)
{
    struct object_type_entry *e, *next;

    HASH_ITER(hh, t->table, e, next)
    {
        HASH_DEL(t->table, e);
        free(e);
    }
    pthread_mutex_destroy(&t->lock);
}

static const struct tenrec_object_type *object_find(struct object_types *t, const char *name)
{
    struct object_type_entry *e;

    pthread_mutex_lock(&t->lock);
    HASH_FIND_STR(t->table, name, e);
    pthread_mutex_unlock(&t->lock);
    return e ? e->type : NULL;
}

tenrec_status object_decode(struct object_types *t, const char *name,
                            const struct tenrec_value *value, struct tenrec_object **ret,
                            tenrec_error *err)
{
    const struct tenrec_object_type *type = object_find(t, name);
    const uint32_t forks = forks_seen;
    void *data = NULL;
    tenrec_status st;

    if (!type)
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "the type '%s' of a received object is not registered here", name);
    st = type->decode(value, type->arg, &data, err);
    forks_check(forks, "the decode function of an object");
    if (st != TENREC_OK) {
        tenrec_error_prefix(err, "object of type '%s'", name);
        return st;
    }
    st = tenrec_object_new(type, data, ret, err);
    if (st != TENREC_OK)
        object_free_data(type, data);
    return st;
}

tenrec_status object_types_add(struct object_types *t, const struct tenrec_object_type *type,
                               tenrec_error *err)
{
    struct object_type_entry *e, *former;
    tenrec_status st = check_type(type, err);

    if (st != TENREC_OK)
        return st;
    if (!type->decode)
        return tenrec_fail(err, TENREC_EINVAL,
                           "object type '%s' has no decode: its objects cannot be received",
                           type->name);
    e = memory_new(1, sizeof *e);
    if (!e)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for object type '%s'", type->name);
    e->type = type;
    pthread_mutex_lock(&t->lock);
    HASH_FIND_STR(t->table, type->name, former);
    if (former && former->type != type) {
        st = tenrec_fail(err, TENREC_EEXIST, "object type '%s' is registered already", type->name);
    } else if (!former) {
        HASH_ADD_KEYPTR(hh, t->table, e->type->name, strlen(type->name), e);
        if (!hash_has(e))
            st = tenrec_fail(err, TENREC_ENOMEM, "no memory for object type '%s'", type->name);
        else
            e = NULL;
    }
    pthread_mutex_unlock(&t->lock);
    free(e);
    return st;
}
