/* SPDX-License-Identifier: Apache-2.0 */
#include "hooked_store.h"

#include "group/store/store.h"

#include <stdlib.h>

#define FOREVER_MS 20000 /* the store in memory answers at once */

static struct hooks *hooks_of(struct tenrec_plugin_store *s)
{
    return s->impl;
}

/* The keys begin with the slash of the outer store, and the inner one puts its own in front. */
static const char *inner_key(const char *key)
{
    return *key == '/' ? key + 1 : key;
}

static tenrec_status before(struct tenrec_plugin_store *s, enum hooked_op op,
                            const char *const *keys, uint32_t n, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (uint32_t i = 0; i < n && hooks_of(s)->before && st == TENREC_OK; i++)
        st = hooks_of(s)->before(op, inner_key(keys[i]));
    return st == TENREC_OK ? st : tenrec_fail(err, st, "it was not asked");
}

static tenrec_status after(struct tenrec_plugin_store *s, enum hooked_op op, const char *key,
                           tenrec_error *err)
{
    const tenrec_status st =
        hooks_of(s)->after ? hooks_of(s)->after(op, inner_key(key)) : TENREC_OK;

    return st == TENREC_OK ? st : tenrec_fail(err, st, "the answer was lost");
}

static const char **inner_keys(const char *const *keys, uint32_t n)
{
    const char **ret = calloc(n, sizeof *ret);

    if (!ret)
        abort();
    for (uint32_t i = 0; i < n; i++)
        ret[i] = inner_key(keys[i]);
    return ret;
}

static tenrec_status hooked_set(struct tenrec_plugin_store *s, const char *key, const void *data,
                                size_t len, uint64_t deadline_ns, tenrec_error *err)
{
    const tenrec_status st = before(s, HOOKED_SET, &key, 1, err);

    (void)deadline_ns;
    return st == TENREC_OK
               ? tenrec_store_set(hooks_of(s)->inner, inner_key(key), data, len, FOREVER_MS, err)
               : st;
}

static tenrec_status hooked_add(struct tenrec_plugin_store *s, const char *key, int64_t delta,
                                uint64_t deadline_ns, int64_t *ret, tenrec_error *err)
{
    const tenrec_status st = before(s, HOOKED_ADD, &key, 1, err);

    (void)deadline_ns;
    return st == TENREC_OK
               ? tenrec_store_add(hooks_of(s)->inner, inner_key(key), delta, FOREVER_MS, ret, err)
               : st;
}

static tenrec_status hooked_compare_set(struct tenrec_plugin_store *s, const char *key,
                                        const void *expected, size_t expected_len,
                                        const void *desired, size_t desired_len,
                                        uint64_t deadline_ns, tenrec_store_value_fn *fn, void *arg,
                                        tenrec_error *err)
{
    tenrec_status st = before(s, HOOKED_COMPARE_SET, &key, 1, err);
    void *now = NULL;
    size_t len = 0;

    (void)deadline_ns;
    if (st == TENREC_OK)
        st = tenrec_store_compare_set(hooks_of(s)->inner, inner_key(key), expected, expected_len,
                                      desired, desired_len, FOREVER_MS, &now, &len, err);
    if (st == TENREC_OK)
        st = after(s, HOOKED_COMPARE_SET, key, err);
    if (st == TENREC_OK)
        st = fn(arg, 0, now, len, err);
    free(now);
    return st;
}

static tenrec_status hooked_get(struct tenrec_plugin_store *s, const char *const *keys, uint32_t n,
                                uint64_t deadline_ns, tenrec_store_value_fn *fn, void *arg,
                                bool *ret_missing, tenrec_error *err)
{
    struct store_value *value = calloc(n, sizeof *value);
    const char **inner = inner_keys(keys, n);
    tenrec_status st = before(s, HOOKED_GET, keys, n, err);

    if (!value)
        abort();
    if (st == TENREC_OK)
        st = store_get_all(hooks_of(s)->inner, inner, n, deadline_ns, fn ? value : NULL,
                           ret_missing, err);
    for (uint32_t i = 0; i < n && st == TENREC_OK && fn; i++)
        st = fn(arg, i, value[i].data, value[i].len, err);
    store_values_free(value, n);
    free(value);
    free(inner);
    return st;
}

static tenrec_status hooked_check(struct tenrec_plugin_store *s, const char *const *keys,
                                  uint32_t n, uint64_t deadline_ns, bool *ret_missing,
                                  tenrec_error *err)
{
    const char **inner = inner_keys(keys, n);
    tenrec_status st = before(s, HOOKED_CHECK, keys, n, err);

    if (st == TENREC_OK)
        st = store_check_all(hooks_of(s)->inner, inner, n, deadline_ns, ret_missing, err);
    free(inner);
    return st;
}

static tenrec_status hooked_remove(struct tenrec_plugin_store *s, const char *const *keys,
                                   uint32_t n, uint64_t deadline_ns, uint32_t *ret,
                                   tenrec_error *err)
{
    const char **inner = inner_keys(keys, n);
    size_t gone = 0;
    tenrec_status st = before(s, HOOKED_REMOVE, keys, n, err);

    if (st == TENREC_OK)
        st = store_remove_all(hooks_of(s)->inner, inner, n, deadline_ns, &gone, err);

    *ret = (uint32_t)gone;
    free(inner);
    return st;
}

static tenrec_status hooked_num_keys(struct tenrec_plugin_store *s, uint64_t deadline_ns,
                                     int64_t *ret, tenrec_error *err)
{
    (void)deadline_ns;
    return tenrec_store_num_keys(hooks_of(s)->inner, FOREVER_MS, ret, err);
}

static void hooked_close(struct tenrec_plugin_store *s, uint64_t deadline_ns)
{
    store_close(hooks_of(s)->inner, deadline_ns);
}

static const char *hooked_name(struct tenrec_plugin_store *s)
{
    (void)s;
    return "hooked store";
}

static tenrec_status hooked_init(const struct tenrec_store_init *in, struct tenrec_plugin_store *s,
                                 tenrec_error *err)
{
    static const struct tenrec_store_ops ops = {
        .size = sizeof ops,
        .name = hooked_name,
        .set = hooked_set,
        .add = hooked_add,
        .compare_set = hooked_compare_set,
        .get = hooked_get,
        .check = hooked_check,
        .remove = hooked_remove,
        .num_keys = hooked_num_keys,
        .close = hooked_close,
    };

    (void)err;
    s->ops = &ops;
    s->impl = (void *)(uintptr_t)in->options;
    return TENREC_OK;
}

struct tenrec_store *hooked_store(struct hooks *h, struct tenrec_store *inner)
{
    const struct stores_choice choice = { .init = hooked_init, .options = h };
    struct tenrec_store *ret = NULL;
    tenrec_error err;

    h->inner = inner;
    if (store_new(&choice, NULL, "hooked", UINT64_MAX, &ret, &err) != TENREC_OK)
        abort();
    return ret;
}
