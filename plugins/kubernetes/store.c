/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - the operations of a store. */
#include "kubernetes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GAP_MS 50 /* before a broken watch begins again */

static const char *kubernetes_name(struct tenrec_plugin_store *self)
{
    const struct kubernetes_store *s = self->impl;

    return s->name;
}

static const char *kubernetes_address(struct tenrec_plugin_store *self)
{
    const struct kubernetes_store *s = self->impl;

    return *s->pool.address ? s->pool.address : NULL;
}

/* ---- changes ---- */

static tenrec_status value_check(const char *key, size_t len, tenrec_error *err)
{
    if (len <= TENREC_STORE_SMALL_VALUE)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_ETOOBIG,
                       "the value of \"%.100s\" has %zu bytes, a ConfigMap takes %zu", key, len,
                       TENREC_STORE_SMALL_VALUE);
}

static enum change_step plan_set(struct change *c, const char *held, size_t held_len,
                                 tenrec_error *err)
{
    (void)c, (void)held, (void)held_len, (void)err;
    return CHANGE_MAKE;
}

static tenrec_status kubernetes_set(struct tenrec_plugin_store *self, const char *key,
                                    const void *data, size_t len, uint64_t deadline_ns,
                                    tenrec_error *err)
{
    struct change c = { .key = key, .plan = plan_set, .data = data, .len = len };
    tenrec_status st = value_check(key, len, err);

    if (st == TENREC_OK)
        st = change_run(self->impl, &c, deadline_ns, err);
    free(c.held);
    return st;
}

static enum change_step plan_add(struct change *c, const char *held, size_t held_len,
                                 tenrec_error *err)
{
    if (sum_add(c->key, held, held_len, *(const int64_t *)c->arg, c->sum, err) != TENREC_OK)
        return CHANGE_FAIL;
    c->data = c->sum;
    c->len = strlen(c->sum);
    return CHANGE_MAKE;
}

static tenrec_status kubernetes_add(struct tenrec_plugin_store *self, const char *key,
                                    int64_t delta, uint64_t deadline_ns, int64_t *ret,
                                    tenrec_error *err)
{
    struct change c = { .key = key, .plan = plan_add, .arg = &delta };
    int64_t sum;
    tenrec_status st = change_run(self->impl, &c, deadline_ns, err);

    free(c.held);
    if (st == TENREC_OK && !sum_read(c.sum, strlen(c.sum), &sum))
        st = tenrec_fail(err, TENREC_EPROTOCOL, "the server keeps a malformed record");
    if (st == TENREC_OK)
        *ret = sum;
    return st;
}

struct expected {
    const void *data;
    size_t len;
};

static enum change_step plan_swap(struct change *c, const char *held, size_t held_len,
                                  tenrec_error *err)
{
    const struct expected *e = c->arg;

    (void)err;
    if (held ? held_len != e->len || memcmp(held, e->data, held_len) != 0 : e->len > 0)
        return CHANGE_LEAVE;
    return CHANGE_MAKE;
}

static tenrec_status kubernetes_compare_set(struct tenrec_plugin_store *self, const char *key,
                                            const void *expected, size_t expected_len,
                                            const void *desired, size_t desired_len,
                                            uint64_t deadline_ns, tenrec_store_value_fn *fn,
                                            void *arg, tenrec_error *err)
{
    const struct expected e = { expected_len ? expected : "", expected_len };
    struct change c = {
        .key = key, .plan = plan_swap, .arg = &e, .data = desired, .len = desired_len
    };
    tenrec_status st = value_check(key, desired_len, err);

    if (st == TENREC_OK)
        st = change_run(self->impl, &c, deadline_ns, err);
    if (st == TENREC_OK && c.made)
        st = fn(arg, 0, desired_len ? desired : "", desired_len, err);
    else if (st == TENREC_OK && c.held)
        st = fn(arg, 0, c.held, c.held_len, err);
    else if (st == TENREC_OK)
        st = fn(arg, 0, e.data, e.len, err);
    free(c.held);
    return st;
}

static tenrec_status kubernetes_remove(struct tenrec_plugin_store *self, const char *const *keys,
                                       uint32_t n, uint64_t deadline_ns, uint32_t *ret,
                                       tenrec_error *err)
{
    tenrec_status st = TENREC_OK;
    bool removed;

    *ret = 0;
    for (uint32_t i = 0; i < n && st == TENREC_OK; i++) {
        st = change_remove(self->impl, keys[i], deadline_ns, &removed, err);
        *ret += removed;
    }
    return st;
}

/* ---- reads ---- */

static tenrec_status kubernetes_check(struct tenrec_plugin_store *self, const char *const *keys,
                                      uint32_t n, uint64_t deadline_ns, bool *ret_missing,
                                      tenrec_error *err)
{
    struct kubernetes_store *s = self->impl;
    struct list l;
    tenrec_status st = list_read(s, keys, n, deadline_ns, &l, err);

    if (st != TENREC_OK)
        return st;
    list_missing(s, &l, keys, n, ret_missing);
    list_drop(&l);
    return TENREC_OK;
}

/* Until all keys exist. Returns ETIMEDOUT, without a text, when some are missing. */
static tenrec_status get_list(struct kubernetes_store *s, const char *const *keys, uint32_t n,
                              uint64_t deadline_ns, struct list *ret, bool *ret_missing,
                              tenrec_error *err)
{
    struct backoff gap = { (uint64_t)GAP_MS * 1000, (uint64_t)GAP_MS * 1000 };
    tenrec_error why = { 0 };

    for (;;) {
        enum http_end end;
        tenrec_status st = list_read(s, keys, n, deadline_ns, ret, err);
        /* ETIMEDOUT means missing keys to the caller; a silent server is another error. */
        if (st == TENREC_ETIMEDOUT) {
            st = TENREC_EPEER_LOST;
            if (err)
                err->code = st;
        }
        if (st != TENREC_OK || !list_missing(s, ret, keys, n, ret_missing))
            return st;
        if (clock_passed(deadline_ns)) {
            list_drop(ret);
            return TENREC_ETIMEDOUT;
        }
        end = watch_wait(s, keys, n, ret_missing, ret->version, deadline_ns, &why);
        list_drop(ret);
        if (end == HTTP_NEVER) {
            if (err)
                *err = why;
            return why.code;
        }
        if (end == HTTP_AGAIN)
            backoff_take(&gap, deadline_ns);
        if (clock_passed(asker_answer_ns(deadline_ns)))
            return TENREC_ETIMEDOUT; /* too late to look again */
    }
}

static tenrec_status kubernetes_get(struct tenrec_plugin_store *self, const char *const *keys,
                                    uint32_t n, uint64_t deadline_ns, tenrec_store_value_fn *fn,
                                    void *arg, bool *ret_missing, tenrec_error *err)
{
    struct kubernetes_store *s = self->impl;
    struct list l;
    tenrec_status st = get_list(s, keys, n, deadline_ns, &l, ret_missing, err);

    if (st != TENREC_OK)
        return st;
    for (uint32_t i = 0; i < n && fn && st == TENREC_OK; i++) {
        char *value;
        size_t len;
        st = object_value(list_find(s, &l, keys[i]), &value, &len, err);
        if (st == TENREC_OK)
            st = fn(arg, i, value, len, err);
        free(value);
    }
    list_drop(&l);
    return st;
}

static tenrec_status kubernetes_num_keys(struct tenrec_plugin_store *self, uint64_t deadline_ns,
                                         int64_t *ret, tenrec_error *err)
{
    struct list l;
    tenrec_status st = list_read(self->impl, NULL, 0, deadline_ns, &l, err);

    if (st != TENREC_OK)
        return st;
    *ret = (int64_t)json_object_size(l.by_hash) - 1; /* but the owner */
    list_drop(&l);
    return TENREC_OK;
}

static void kubernetes_close(struct tenrec_plugin_store *self, uint64_t deadline_ns)
{
    struct kubernetes_store *s = self->impl;

    (void)deadline_ns;
    keeper_stop(&s->keeper);
    kubernetes_free(s);
}

const struct tenrec_store_ops kubernetes_ops = {
    .size = sizeof kubernetes_ops,
    .lacks = TENREC_STORE_LACKS_LARGE,
    .name = kubernetes_name,
    .set = kubernetes_set,
    .add = kubernetes_add,
    .compare_set = kubernetes_compare_set,
    .get = kubernetes_get,
    .check = kubernetes_check,
    .remove = kubernetes_remove,
    .num_keys = kubernetes_num_keys,
    .close = kubernetes_close,
    .address = kubernetes_address,
};
