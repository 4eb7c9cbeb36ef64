/* SPDX-License-Identifier: Apache-2.0 */
#include "group/store/store.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "group/store/bytes.h"

#include <stdlib.h>
#include <string.h>

#define MAX_MISSING_NAMED 4 /* keys that an error names */
#define READ_MS 1000        /* of the first attempt to read keys that are present */
#define READ_MOST_MS 60000

uint64_t store_answer_ns(uint64_t deadline_ns)
{
    const uint64_t more_ns = STORE_ANSWER_MS * UINT64_C(1000000);

    return deadline_ns > CLOCK_NEVER - more_ns ? CLOCK_NEVER : deadline_ns + more_ns;
}

/* A plugin may have left the error's status out. */
static tenrec_status store_blame(const struct tenrec_store *s, tenrec_status st, tenrec_error *err)
{
    if (st != TENREC_OK)
        tenrec_error_prefix(err, "%s", s->base->name);
    if (st != TENREC_OK && err)
        err->code = st;
    return st;
}

static struct tenrec_plugin_store *self_of(const struct tenrec_store *s)
{
    return &s->base->self;
}

/* The values that one operation passes. */
struct store_values {
    struct store_value *value;
    uint32_t n;
};

static tenrec_status store_values_put(void *arg, uint32_t i, const void *data, size_t len,
                                      tenrec_error *err)
{
    struct store_values *t = arg;

    if (i >= t->n || t->value[i].data)
        return tenrec_fail(err, TENREC_EPROTOCOL, "the plugin gave value %u out of turn", i);
    t->value[i].len = len;
    if (!(t->value[i].data = bytes_copy(data, len)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a value of %zu bytes", len);
    return TENREC_OK;
}

static tenrec_status store_values_check(const struct store_values *t, tenrec_error *err)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (!t->value[i].data)
            return tenrec_fail(err, TENREC_EPROTOCOL, "the plugin did not give value %u", i);
    return TENREC_OK;
}

/* Begins every operation. ret: the whole keys, in one block; free() it. */
static tenrec_status store_begin(const struct tenrec_store *s, const char *const *keys, size_t n,
                                 const char ***ret, tenrec_error *err)
{
    size_t total = n * sizeof **ret;
    const char **whole;
    char *at;

    if (!s || (n && !keys))
        return tenrec_fail(err, TENREC_EINVAL, "a store and a key are needed");
    if (n > UINT32_MAX)
        return tenrec_fail(err, TENREC_ETOOBIG, "%s: %zu keys at once", s->base->name, n);
    for (size_t i = 0; i < n; i++) {
        size_t len = keys[i] ? s->prefix_len + strlen(keys[i]) : 0;
        if (!keys[i])
            return tenrec_fail(err, TENREC_EINVAL, "a key is missing");
        if (len > TENREC_STORE_MAX_KEY)
            return tenrec_fail(err, TENREC_ETOOBIG, "key \"%.32s...\" has %zu bytes, at most %d",
                               keys[i], len, TENREC_STORE_MAX_KEY);
        total += len + 1;
    }
    if (!(whole = memory_new(total, 1)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu keys", n);
    at = (char *)(whole + n);
    for (size_t i = 0; i < n; i++) {
        whole[i] = at;
        at = stpcpy(stpcpy(at, s->prefix), keys[i]) + 1;
    }
    *ret = whole;
    return TENREC_OK;
}

static tenrec_status check_value(size_t len, tenrec_error *err)
{
    if (len <= TENREC_STORE_MAX_VALUE)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_ETOOBIG, "value has %zu bytes, at most %zu", len,
                       TENREC_STORE_MAX_VALUE);
}

tenrec_status store_set(struct tenrec_store *s, const char *key, const void *data, size_t len,
                        uint64_t deadline_ns, tenrec_error *err)
{
    const char **k = NULL;
    tenrec_status st = check_value(len, err);

    if (st != TENREC_OK || (st = store_begin(s, &key, 1, &k, err)) != TENREC_OK)
        return st;
    st = self_of(s)->ops->set(self_of(s), k[0], data, len, deadline_ns, err);
    free(k);
    return store_blame(s, st, err);
}

static tenrec_status set_each(struct tenrec_plugin_store *s, const struct tenrec_store_item *item,
                              uint32_t n, uint64_t deadline_ns, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (uint32_t i = 0; i < n && st == TENREC_OK; i++)
        st = s->ops->set(s, item[i].key, item[i].data, item[i].len, deadline_ns, err);
    return st;
}

tenrec_status store_set_all(struct tenrec_store *s, const char *const *keys,
                            const struct store_value *values, size_t n, uint64_t deadline_ns,
                            tenrec_error *err)
{
    struct tenrec_store_item *item = memory_new(n ? n : 1, sizeof *item);
    const char **k = NULL;
    tenrec_status st = item ? store_begin(s, keys, n, &k, err)
                            : tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu values", n);

    for (size_t i = 0; i < n && st == TENREC_OK; i++) {
        item[i] = (struct tenrec_store_item){ k[i], values[i].data, values[i].len };
        st = check_value(values[i].len, err);
    }
    if (st == TENREC_OK && n)
        st = store_blame(s,
                         (TENREC_HAS(self_of(s)->ops, set_all)
                              ? self_of(s)->ops->set_all
                              : set_each)(self_of(s), item, (uint32_t)n, deadline_ns, err),
                         err);
    free(k);
    free(item);
    return st;
}

tenrec_status store_add(struct tenrec_store *s, const char *key, int64_t delta,
                        uint64_t deadline_ns, int64_t *ret, tenrec_error *err)
{
    int64_t sum = 0;
    const char **k = NULL;
    tenrec_status st = store_begin(s, &key, 1, &k, err);

    if (st != TENREC_OK)
        return st;
    st = self_of(s)->ops->add(self_of(s), k[0], delta, deadline_ns, &sum, err);
    free(k);
    if (st == TENREC_OK && ret)
        *ret = sum;
    return store_blame(s, st, err);
}

tenrec_status store_compare_set(struct tenrec_store *s, const char *key,
                                const struct store_value *expected,
                                const struct store_value *desired, uint64_t deadline_ns,
                                struct store_value *ret, tenrec_error *err)
{
    struct store_value now = { 0 };
    struct store_values values = { &now, 1 };
    const char **k = NULL;
    tenrec_status st = check_value(desired->len, err);

    if (st == TENREC_OK)
        st = check_value(expected->len, err);
    if (st != TENREC_OK || (st = store_begin(s, &key, 1, &k, err)) != TENREC_OK)
        return st;
    st =
        self_of(s)->ops->compare_set(self_of(s), k[0], expected->data, expected->len, desired->data,
                                     desired->len, deadline_ns, store_values_put, &values, err);
    if (st == TENREC_OK)
        st = store_values_check(&values, err);
    free(k);
    if (st == TENREC_OK && ret)
        *ret = now;
    else
        free(now.data);
    return store_blame(s, st, err);
}

tenrec_status store_swap_text(struct tenrec_store *s, const char *key, const char *from,
                              const char *to, uint64_t deadline_ns, char **ret, tenrec_error *err)
{
    /* Both are only read. */
    const struct store_value expected = { (void *)(uintptr_t)from, strlen(from) };
    const struct store_value desired = { (void *)(uintptr_t)to, strlen(to) };
    struct store_value now = { 0 };
    tenrec_status st = store_compare_set(s, key, &expected, &desired, deadline_ns, &now, err);

    *ret = now.data;
    return st;
}

tenrec_status store_num_keys(struct tenrec_store *s, uint64_t deadline_ns, int64_t *ret,
                             tenrec_error *err)
{
    return store_blame(s, self_of(s)->ops->num_keys(self_of(s), deadline_ns, ret, err), err);
}

void store_values_free(struct store_value *values, size_t n)
{
    for (size_t i = 0; values && i < n; i++)
        free(values[i].data);
}

/* "no key "a", "b" and 3 more in <store> after 200 ms"; `more` is the store's own text. */
static tenrec_status fail_missing(const struct tenrec_store *s, const char *const *keys,
                                  const bool *missing, size_t n, uint64_t since_ns,
                                  const char *more, tenrec_error *err)
{
    size_t n_named = 0, n_missing = 0, at = 0;
    char text[200] = "";

    for (size_t i = 0; i < n; i++)
        n_missing += missing[i];
    for (size_t i = 0; i < n && n_named < MAX_MISSING_NAMED && at < sizeof text - 60; i++) {
        if (!missing[i])
            continue;
        at += (size_t)snprintf(text + at, sizeof text - at, "%s\"%.40s\"", n_named ? ", " : "",
                               keys[i]);
        n_named++;
    }
    if (n_named < n_missing)
        snprintf(text + at, sizeof text - at, " and %zu more", n_missing - n_named);
    return tenrec_fail(err, TENREC_ETIMEDOUT, "no key %s in %s after %llu ms%s%s", text,
                       s->base->name, (unsigned long long)((clock_now_ns() - since_ns) / 1000000u),
                       *more ? "; " : "", more);
}

/* Makes the whole keys, and names the missing ones. */
tenrec_status store_get_all(struct tenrec_store *s, const char *const *keys, size_t n,
                            uint64_t deadline_ns, struct store_value *ret, bool *ret_missing,
                            tenrec_error *err)
{
    uint64_t since_ns = clock_now_ns();
    bool one = false, *missing = ret_missing ? ret_missing : &one;
    struct store_values values = { ret, (uint32_t)n };
    const char **k = NULL;
    tenrec_error why = { 0 };
    tenrec_status st = store_begin(s, keys, n, &k, err);

    if (st != TENREC_OK || n == 0) {
        free(k);
        return st;
    }
    if (!ret_missing && n > 1 && !(missing = memory_new(n, sizeof *missing))) {
        free(k);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu keys", n);
    }
    if (ret)
        memset(ret, 0, n * sizeof *ret);
    st = self_of(s)->ops->get(self_of(s), k, values.n, deadline_ns, ret ? store_values_put : NULL,
                              &values, missing, &why);
    if (st == TENREC_OK && ret)
        st = store_values_check(&values, &why);
    if (st == TENREC_ETIMEDOUT)
        fail_missing(s, keys, missing, n, since_ns, why.text, err);
    else if (store_blame(s, st, &why) != TENREC_OK && err)
        *err = why;
    if (st != TENREC_OK && ret) {
        store_values_free(ret, n);
        memset(ret, 0, n * sizeof *ret);
    }
    if (missing != ret_missing && missing != &one)
        free(missing);
    free(k);
    return st;
}

tenrec_status store_check_all(struct tenrec_store *s, const char *const *keys, size_t n,
                              uint64_t deadline_ns, bool *ret_missing, tenrec_error *err)
{
    const char **k = NULL;
    tenrec_status st = store_begin(s, keys, n, &k, err);

    if (st == TENREC_OK)
        st = store_blame(
            s, self_of(s)->ops->check(self_of(s), k, (uint32_t)n, deadline_ns, ret_missing, err),
            err);
    free(k);
    return st;
}

tenrec_status store_wait_then_check(struct tenrec_plugin_store *s, const char *const *keys,
                                    uint32_t n, uint64_t until_ns, uint64_t deadline_ns,
                                    bool *ret_missing, tenrec_error *err)
{
    tenrec_status st = s->ops->get(s, keys, n, until_ns, NULL, NULL, ret_missing, err);

    if (st != TENREC_ETIMEDOUT && st != TENREC_EPEER_LOST)
        return st;
    st = s->ops->check(s, keys, n, deadline_ns, ret_missing, err);
    return st == TENREC_OK ? TENREC_ETIMEDOUT : st;
}

tenrec_status store_wait_round(struct tenrec_store *s, const char *const *keys, size_t n,
                               uint64_t until_ns, uint64_t deadline_ns, bool *ret_missing,
                               tenrec_error *err)
{
    const char **k = NULL;
    tenrec_status st = store_begin(s, keys, n, &k, err);

    if (st != TENREC_OK)
        return st;
    st = (TENREC_HAS(self_of(s)->ops, wait_round) ? self_of(s)->ops->wait_round
                                                  : store_wait_then_check)(
        self_of(s), k, (uint32_t)n, until_ns, deadline_ns, ret_missing, err);
    free(k);
    return st == TENREC_ETIMEDOUT ? st : store_blame(s, st, err);
}

tenrec_status store_read(struct tenrec_store *s, const char *key, uint64_t deadline_ns,
                         struct store_value *ret, tenrec_error *err)
{
    return store_read_all(s, &key, 1, deadline_ns, ret, err);
}

/* Reads the keys that are present. If one is removed after the check, some stores wait for it in
 * vain, so an attempt has a limit. The limit grows: many readers of a busy store would else drop
 * their connections and ask again, each before its answer arrives, and the store would only write
 * answers that no client reads. */
tenrec_status store_read_all(struct tenrec_store *s, const char *const *keys, size_t n,
                             uint64_t deadline_ns, struct store_value *ret, tenrec_error *err)
{
    bool *missing = memory_new(n ? n : 1, sizeof *missing);
    const char **key = memory_new(n ? n : 1, sizeof *key);
    uint64_t soon_ns, attempt_ms = READ_MS;
    size_t there;
    tenrec_status st =
        missing && key ? TENREC_OK : tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu keys", n);

    memset(ret, 0, n * sizeof *ret);
    if (st != TENREC_OK)
        goto out;
    do {
        there = 0;
        st = store_check_all(s, keys, n, deadline_ns, missing, err);
        for (size_t i = 0; i < n && st == TENREC_OK; i++)
            if (!missing[i])
                key[there++] = keys[i];
        if (st != TENREC_OK)
            goto out;
        soon_ns = clock_deadline_ms(attempt_ms);
        soon_ns = soon_ns < deadline_ns ? soon_ns : deadline_ns;
        attempt_ms = attempt_ms < READ_MOST_MS ? attempt_ms * 2 : attempt_ms;
        st = store_get_all(s, key, there, soon_ns, ret, NULL, err);
    } while (soon_ns < deadline_ns && (st == TENREC_ETIMEDOUT || st == TENREC_EPEER_LOST));
    for (size_t i = n; i-- > 0 && st == TENREC_OK;) {
        const struct store_value v =
            missing[i] ? (struct store_value){ .data = NULL } : ret[--there];
        ret[i] = v;
    }
out:
    free(missing);
    free(key);
    return st;
}

tenrec_status store_remove_all(struct tenrec_store *s, const char *const *keys, size_t n,
                               uint64_t deadline_ns, size_t *ret, tenrec_error *err)
{
    uint32_t gone = 0;
    const char **k = NULL;
    tenrec_status st = store_begin(s, keys, n, &k, err);

    if (st == TENREC_OK && n > 0)
        st = store_blame(
            s, self_of(s)->ops->remove(self_of(s), k, (uint32_t)n, deadline_ns, &gone, err), err);
    free(k);
    if (ret)
        *ret = gone;
    return st;
}

tenrec_status store_remove(struct tenrec_store *s, const char *key, uint64_t deadline_ns,
                           tenrec_error *err)
{
    return store_remove_all(s, &key, 1, deadline_ns, NULL, err);
}

const char **store_numbered_keys(const char *prefix, size_t n)
{
    const size_t room = strlen(prefix) + 24; /* a slash, a number and a NUL */
    const char **keys = memory_new(n, sizeof *keys + room);
    char *text;

    if (!keys)
        return NULL;
    text = (char *)(keys + n);
    for (size_t i = 0; i < n; i++) {
        keys[i] = text + i * room;
        snprintf(text + i * room, room, "%s/%zu", prefix, i);
    }
    return keys;
}

#define INIT "init/" /* without any prefix */

tenrec_status store_count_init(struct tenrec_store *s, uint64_t deadline_ns, tenrec_error *err)
{
    int64_t n;

    return store_blame(s, self_of(s)->ops->add(self_of(s), INIT, 1, deadline_ns, &n, err), err);
}

tenrec_status store_has_init(struct tenrec_store *s, uint64_t deadline_ns, bool *ret,
                             tenrec_error *err)
{
    static const char *const key = INIT;
    bool missing = true;
    tenrec_status st = self_of(s)->ops->check(self_of(s), &key, 1, deadline_ns, &missing, err);

    *ret = st == TENREC_OK && !missing;
    return store_blame(s, st, err);
}

tenrec_status store_fail_init(struct tenrec_store *s, uint64_t deadline_ns, tenrec_error *err)
{
    static const char text[] = "static groups are refused";

    return store_blame(
        s, self_of(s)->ops->set(self_of(s), INIT, text, sizeof text - 1, deadline_ns, err), err);
}
