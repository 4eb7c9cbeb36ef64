/* SPDX-License-Identifier: Apache-2.0 */
#include "group/store/store.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "group/store/bytes.h"

#include <stdlib.h>
#include <string.h>

/* A store or a view of one. */
struct tenrec_store {
    struct store_backend *backend; /* shares (counted) */
    size_t prefix_len;
    char prefix[];
};

#define MAX_MISSING_NAMED 4 /* keys that an error names */
#define DROP_MS 1000        /* of a drop, for changes for other processes */
#define READ_MS 200         /* of one attempt to read a key that is present */

uint64_t store_answer_ns(uint64_t deadline_ns)
{
    const uint64_t more_ns = STORE_ANSWER_MS * UINT64_C(1000000);

    return deadline_ns > CLOCK_NEVER - more_ns ? CLOCK_NEVER : deadline_ns + more_ns;
}

tenrec_status store_handle_new(struct store_backend *b, const char *prefix,
                               struct tenrec_store **ret, tenrec_error *err)
{
    size_t len = strlen(prefix);
    struct tenrec_store *s = memory_new(1, sizeof *s + len + 1);

    if (!s) {
        if (atomic_fetch_sub(&b->refs, 1) == 1)
            b->ops->destroy(b, clock_now_ns());
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a store");
    }
    s->backend = b;
    s->prefix_len = len;
    memcpy(s->prefix, prefix, len + 1);
    *ret = s;
    return TENREC_OK;
}

tenrec_status tenrec_store_open_prefix(struct tenrec_store *s, const char *prefix,
                                       struct tenrec_store **ret, tenrec_error *err)
{
    size_t len;
    tenrec_status st;
    char *whole;

    if (ret)
        *ret = NULL;
    if (!s || !prefix || !*prefix || !ret)
        return tenrec_fail(err, TENREC_EINVAL, "a prefixed store needs a store and a prefix");
    len = s->prefix_len + strlen(prefix) + 2;
    if (len > TENREC_STORE_MAX_KEY)
        return tenrec_fail(err, TENREC_ETOOBIG, "prefix of %zu bytes is longer than a key of %d",
                           len, TENREC_STORE_MAX_KEY);
    if (!(whole = memory_new(len, 1)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a store");
    snprintf(whole, len, "%s%s/", s->prefix, prefix);
    atomic_fetch_add(&s->backend->refs, 1);
    st = store_handle_new(s->backend, whole, ret, err);
    free(whole);
    return st;
}

void store_close(struct tenrec_store *s, uint64_t deadline_ns)
{
    if (!s)
        return;
    if (atomic_fetch_sub(&s->backend->refs, 1) == 1)
        s->backend->ops->destroy(s->backend, deadline_ns);
    free(s);
}

void store_cut(struct tenrec_store *s)
{
    if (s->backend->ops->cut)
        s->backend->ops->cut(s->backend);
}

void tenrec_store_close(struct tenrec_store *s)
{
    store_close(s, clock_deadline_ms(DROP_MS));
}

const char *tenrec_store_name(const struct tenrec_store *s)
{
    return s->backend->name;
}

const char *store_at(const struct tenrec_store *s)
{
    return s->backend->at;
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
    if (n > UINT32_MAX) /* for the stores of plugins */
        return tenrec_fail(err, TENREC_ETOOBIG, "%s: %zu keys at once", s->backend->name, n);
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
    st = s->backend->ops->set(s->backend, k[0], data, len, deadline_ns, err);
    free(k);
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
    st = s->backend->ops->add(s->backend, k[0], delta, deadline_ns, &sum, err);
    free(k);
    if (st == TENREC_OK && ret)
        *ret = sum;
    return st;
}

tenrec_status store_compare_set(struct tenrec_store *s, const char *key,
                                const struct store_value *expected,
                                const struct store_value *desired, uint64_t deadline_ns,
                                struct store_value *ret, tenrec_error *err)
{
    struct store_value now = { 0 };
    const char **k = NULL;
    tenrec_status st = check_value(desired->len, err);

    if (st == TENREC_OK)
        st = check_value(expected->len, err);
    if (st != TENREC_OK || (st = store_begin(s, &key, 1, &k, err)) != TENREC_OK)
        return st;
    st = s->backend->ops->compare_set(s->backend, k[0], expected, desired, deadline_ns, &now, err);
    free(k);
    if (st == TENREC_OK && ret)
        *ret = now;
    else
        free(now.data);
    return st;
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
    return s->backend->ops->num_keys(s->backend, deadline_ns, ret, err);
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
    return tenrec_fail(
        err, TENREC_ETIMEDOUT, "no key %s in %s after %llu ms%s%s", text, s->backend->name,
        (unsigned long long)((clock_now_ns() - since_ns) / 1000000u), *more ? "; " : "", more);
}

/* Makes the whole keys, and names the missing ones. */
tenrec_status store_get_all(struct tenrec_store *s, const char *const *keys, size_t n,
                            uint64_t deadline_ns, struct store_value *ret, bool *ret_missing,
                            tenrec_error *err)
{
    uint64_t since_ns = clock_now_ns();
    bool one = false, *missing = ret_missing ? ret_missing : &one;
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
    st = s->backend->ops->get(s->backend, k, n, deadline_ns, ret, missing, &why);
    if (st == TENREC_ETIMEDOUT)
        fail_missing(s, keys, missing, n, since_ns, why.text, err);
    else if (st != TENREC_OK && err)
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
        st = s->backend->ops->check(s->backend, k, n, deadline_ns, ret_missing, err);
    free(k);
    return st;
}

tenrec_status store_wait_then_check(struct store_backend *b, const char *const *keys, size_t n,
                                    uint64_t until_ns, uint64_t deadline_ns, bool *ret_missing,
                                    tenrec_error *err)
{
    tenrec_status st = b->ops->get(b, keys, n, until_ns, NULL, ret_missing, err);

    if (st != TENREC_ETIMEDOUT && st != TENREC_EPEER_LOST)
        return st;
    st = b->ops->check(b, keys, n, deadline_ns, ret_missing, err);
    return st == TENREC_OK ? TENREC_ETIMEDOUT : st;
}

tenrec_status store_wait_round(struct tenrec_store *s, const char *const *keys, size_t n,
                               uint64_t until_ns, uint64_t deadline_ns, bool *ret_missing,
                               tenrec_error *err)
{
    const struct store_ops *ops = s->backend->ops;
    const char **k = NULL;
    tenrec_status st = store_begin(s, keys, n, &k, err);

    if (st == TENREC_OK)
        st = (ops->wait_round ? ops->wait_round : store_wait_then_check)(
            s->backend, k, n, until_ns, deadline_ns, ret_missing, err);
    free(k);
    return st;
}

tenrec_status store_read(struct tenrec_store *s, const char *key, uint64_t deadline_ns,
                         struct store_value *ret, tenrec_error *err)
{
    *ret = (struct store_value){ .data = NULL };
    for (;;) {
        bool missing = true;
        tenrec_status st = store_check_all(s, &key, 1, deadline_ns, &missing, err);
        uint64_t soon_ns;

        if (st != TENREC_OK || missing)
            return st;
        /* If the key is removed after the check, the get waits in vain: retry soon. */
        soon_ns = clock_deadline_ms(READ_MS);
        if (soon_ns > deadline_ns)
            soon_ns = deadline_ns;
        st = store_get_all(s, &key, 1, soon_ns, ret, NULL, err);
        if (st == TENREC_OK || soon_ns == deadline_ns ||
            (st != TENREC_ETIMEDOUT && st != TENREC_EPEER_LOST))
            return st;
    }
}

tenrec_status store_remove_all(struct tenrec_store *s, const char *const *keys, size_t n,
                               uint64_t deadline_ns, size_t *ret, tenrec_error *err)
{
    size_t gone = 0;
    const char **k = NULL;
    tenrec_status st = store_begin(s, keys, n, &k, err);

    if (st == TENREC_OK && n > 0)
        st = s->backend->ops->delete_keys(s->backend, k, n, deadline_ns, &gone, err);
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

    return s->backend->ops->add(s->backend, INIT, 1, deadline_ns, &n, err);
}

tenrec_status store_has_init(struct tenrec_store *s, uint64_t deadline_ns, bool *ret,
                             tenrec_error *err)
{
    static const char *const key = INIT;
    bool missing = true;
    tenrec_status st = s->backend->ops->check(s->backend, &key, 1, deadline_ns, &missing, err);

    *ret = st == TENREC_OK && !missing;
    return st;
}

tenrec_status store_fail_init(struct tenrec_store *s, uint64_t deadline_ns, tenrec_error *err)
{
    static const char text[] = "static groups are refused";

    return s->backend->ops->set(s->backend, INIT, text, sizeof text - 1, deadline_ns, err);
}
