/* SPDX-License-Identifier: Apache-2.0 */
#include "hooked_store.h"

#include "group/store/store.h"

#include <stdlib.h>
#include <string.h>

#define FOREVER_MS 20000 /* the store in memory answers at once */

struct hooked {
    struct store_backend backend;
    struct hooks *hooks;
};

static struct hooks *hooks_of(struct store_backend *b)
{
    return ((struct hooked *)b)->hooks;
}

static tenrec_status before(struct store_backend *b, enum hooked_op op, const char *key,
                            tenrec_error *err)
{
    const tenrec_status st = hooks_of(b)->before ? hooks_of(b)->before(op, key) : TENREC_OK;

    return st == TENREC_OK ? st : tenrec_fail(err, st, "it was not asked");
}

static tenrec_status after(struct store_backend *b, enum hooked_op op, const char *key,
                           tenrec_error *err)
{
    const tenrec_status st = hooks_of(b)->after ? hooks_of(b)->after(op, key) : TENREC_OK;

    return st == TENREC_OK ? st : tenrec_fail(err, st, "the answer was lost");
}

static tenrec_status hooked_set(struct store_backend *b, const char *key, const void *data,
                                size_t len, uint64_t deadline_ns, tenrec_error *err)
{
    (void)deadline_ns;
    return tenrec_store_set(hooks_of(b)->inner, key, data, len, FOREVER_MS, err);
}

static tenrec_status hooked_add(struct store_backend *b, const char *key, int64_t delta,
                                uint64_t deadline_ns, int64_t *ret, tenrec_error *err)
{
    (void)deadline_ns;
    return tenrec_store_add(hooks_of(b)->inner, key, delta, FOREVER_MS, ret, err);
}

static tenrec_status hooked_compare_set(struct store_backend *b, const char *key,
                                        const struct store_value *expected,
                                        const struct store_value *desired, uint64_t deadline_ns,
                                        struct store_value *ret, tenrec_error *err)
{
    tenrec_status st = before(b, HOOKED_COMPARE_SET, key, err);

    (void)deadline_ns;
    if (st != TENREC_OK)
        return st;
    st = tenrec_store_compare_set(hooks_of(b)->inner, key, expected->data, expected->len,
                                  desired->data, desired->len, FOREVER_MS, &ret->data, &ret->len,
                                  err);
    if (st == TENREC_OK && (st = after(b, HOOKED_COMPARE_SET, key, err)) != TENREC_OK) {
        free(ret->data);
        ret->data = NULL;
    }
    return st;
}

static tenrec_status hooked_get(struct store_backend *b, const char *const *keys, size_t n,
                                uint64_t deadline_ns, struct store_value *ret, bool *ret_missing,
                                tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (size_t i = 0; i < n && st == TENREC_OK; i++)
        st = before(b, HOOKED_GET, keys[i], err);
    if (st != TENREC_OK)
        return st;
    return store_get_all(hooks_of(b)->inner, keys, n, deadline_ns, ret, ret_missing, err);
}

static tenrec_status hooked_check(struct store_backend *b, const char *const *keys, size_t n,
                                  uint64_t deadline_ns, bool *ret_missing, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (size_t i = 0; i < n && st == TENREC_OK; i++)
        st = before(b, HOOKED_CHECK, keys[i], err);
    return st == TENREC_OK
               ? store_check_all(hooks_of(b)->inner, keys, n, deadline_ns, ret_missing, err)
               : st;
}

static tenrec_status hooked_delete_keys(struct store_backend *b, const char *const *keys, size_t n,
                                        uint64_t deadline_ns, size_t *ret, tenrec_error *err)
{
    return store_remove_all(hooks_of(b)->inner, keys, n, deadline_ns, ret, err);
}

static tenrec_status hooked_num_keys(struct store_backend *b, uint64_t deadline_ns, int64_t *ret,
                                     tenrec_error *err)
{
    (void)deadline_ns;
    return tenrec_store_num_keys(hooks_of(b)->inner, FOREVER_MS, ret, err);
}

static void hooked_destroy(struct store_backend *b, uint64_t deadline_ns)
{
    (void)deadline_ns;
    tenrec_store_close(hooks_of(b)->inner);
    free(b);
}

struct tenrec_store *hooked_store(struct hooks *h, struct tenrec_store *inner)
{
    static const struct store_ops ops = {
        .set = hooked_set,
        .add = hooked_add,
        .compare_set = hooked_compare_set,
        .get = hooked_get,
        .check = hooked_check,
        .delete_keys = hooked_delete_keys,
        .num_keys = hooked_num_keys,
        .destroy = hooked_destroy,
    };
    struct hooked *s = calloc(1, sizeof *s);
    struct tenrec_store *ret = NULL;
    tenrec_error err;

    if (!s)
        abort();
    h->inner = inner;
    s->hooks = h;
    s->backend.ops = &ops;
    atomic_init(&s->backend.refs, 1);
    strcpy(s->backend.name, "hooked store");
    if (store_handle_new(&s->backend, "", &ret, &err) != TENREC_OK)
        abort();
    return ret;
}
