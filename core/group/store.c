#include "group/store.h"

#include "base/clock.h"
#include "base/memory.h"
#include "group/bytes.h"
#include "group/resolve.h"

#include <stdlib.h>
#include <string.h>

/* A store or a view of one. */
struct tenrec_store {
    struct store_backend *backend; /* shares (counted) */
    size_t prefix_len;
    char prefix[];
};

#define MAX_MISSING_TOLD 4 /* keys that an error names */
#define READ_MS 200        /* one try to read a key that was there just now */

tenrec_status store_deadline(int64_t ms, uint64_t *ret_ns, tenrec_error *err)
{
    *ret_ns = 0;
    if (ms < 0)
        return tenrec_fail(err, TENREC_EINVAL,
                           "limit of %lld ms is negative, expected 0 or more, or "
                           "TENREC_TIMEOUT_NONE",
                           (long long)ms);
    *ret_ns = ms == TENREC_TIMEOUT_NONE ? CLOCK_NEVER : clock_deadline_ms((uint64_t)ms);
    return TENREC_OK;
}

int64_t store_left_ms(uint64_t deadline_ns)
{
    return deadline_ns == CLOCK_NEVER ? TENREC_TIMEOUT_NONE : (int64_t)clock_left_ms(deadline_ns);
}

tenrec_status store_handle_new(struct store_backend *b, const char *prefix,
                               struct tenrec_store **ret, tenrec_error *err)
{
    size_t len = strlen(prefix);
    struct tenrec_store *s = memory_new(1, sizeof *s + len + 1);

    if (!s) {
        if (atomic_fetch_sub(&b->refs, 1) == 1)
            b->ops->destroy(b);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a store");
    }
    s->backend = b;
    s->prefix_len = len;
    memcpy(s->prefix, prefix, len + 1);
    *ret = s;
    return TENREC_OK;
}

static tenrec_status open_tcp(const char *address, uint64_t deadline_ns, struct tenrec_store **ret,
                              tenrec_error *err)
{
    char host[256];
    uint16_t port;
    tenrec_status st = resolve_split(address, host, sizeof host, &port, err);

    return st == TENREC_OK ? store_tcp_open(host, port, deadline_ns, ret, err) : st;
}

tenrec_status tenrec_store_open(const char *url, int64_t ms, struct tenrec_store **ret,
                                tenrec_error *err)
{
    uint64_t deadline_ns = 0;
    tenrec_status st;

    if (!url || !ret)
        return tenrec_fail(err, TENREC_EINVAL, "tenrec_store_open needs a url and a result");
    if ((st = store_deadline(ms, &deadline_ns, err)) != TENREC_OK)
        return st;
    if (strncmp(url, "tcp://", 6) == 0)
        st = open_tcp(url + 6, deadline_ns, ret, err);
    else if (strncmp(url, "file://", 7) == 0)
        st = store_file_open(url + 7, 0, deadline_ns, ret, err);
    else if (strncmp(url, "memory://", 9) == 0)
        st = store_memory_open(url + 9, ret, err);
    else
        st = store_open_other(NULL, url, deadline_ns, ret, err);
    return st;
}

tenrec_status tenrec_store_prefix(struct tenrec_store *s, const char *prefix,
                                  struct tenrec_store **ret, tenrec_error *err)
{
    size_t len;
    tenrec_status st;
    char *whole;

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

void tenrec_store_drop(struct tenrec_store *s)
{
    if (!s)
        return;
    if (atomic_fetch_sub(&s->backend->refs, 1) == 1)
        s->backend->ops->destroy(s->backend);
    free(s);
}

const char *tenrec_store_name(const struct tenrec_store *s)
{
    return s->backend->name;
}

const char *store_at(const struct tenrec_store *s)
{
    return s->backend->at;
}

/* Whole keys of one call: in one block, freed at once. */
struct keys {
    const char *one[1];
    const char **list; /* n of them */
    char *text;
};

static void keys_free(struct keys *k)
{
    if (k->list != k->one)
        free(k->list);
    free(k->text);
}

static tenrec_status keys_make(const struct tenrec_store *s, const char *const *keys, size_t n,
                               struct keys *ret, tenrec_error *err)
{
    size_t total = 0, at = 0;

    for (size_t i = 0; i < n; i++) {
        size_t len = keys[i] ? s->prefix_len + strlen(keys[i]) : 0;
        if (!keys[i])
            return tenrec_fail(err, TENREC_EINVAL, "a key is missing");
        if (len > TENREC_STORE_MAX_KEY)
            return tenrec_fail(err, TENREC_ETOOBIG, "key \"%.32s...\" has %zu bytes, at most %d",
                               keys[i], len, TENREC_STORE_MAX_KEY);
        total += len + 1;
    }
    ret->list = n == 1 ? ret->one : memory_new(n, sizeof *ret->list);
    ret->text = memory_new(total, 1);
    if (!ret->list || !ret->text) {
        keys_free(ret);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu keys", n);
    }
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(keys[i]);
        ret->list[i] = ret->text + at;
        memcpy(ret->text + at, s->prefix, s->prefix_len);
        memcpy(ret->text + at + s->prefix_len, keys[i], len + 1);
        at += s->prefix_len + len + 1;
    }
    return TENREC_OK;
}

/* What every public function begins with. */
static tenrec_status begin(struct tenrec_store *s, const char *const *keys, size_t n, int64_t ms,
                           struct keys *ret, uint64_t *ret_deadline, tenrec_error *err)
{
    tenrec_status st;

    if (!s || (n && !keys))
        return tenrec_fail(err, TENREC_EINVAL, "a store and a key are needed");
    if ((st = store_deadline(ms, ret_deadline, err)) != TENREC_OK)
        return st;
    return keys_make(s, keys, n, ret, err);
}

static tenrec_status check_value(size_t len, tenrec_error *err)
{
    if (len <= TENREC_STORE_MAX_VALUE)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_ETOOBIG, "value has %zu bytes, at most %zu", len,
                       TENREC_STORE_MAX_VALUE);
}

tenrec_status tenrec_store_set(struct tenrec_store *s, const char *key, const void *data,
                               size_t len, int64_t ms, tenrec_error *err)
{
    uint64_t deadline_ns = 0;
    struct keys k = { .list = NULL };
    tenrec_status st = check_value(len, err);

    if (st != TENREC_OK || (st = begin(s, &key, 1, ms, &k, &deadline_ns, err)) != TENREC_OK)
        return st;
    st = s->backend->ops->set(s->backend, k.list[0], data, len, deadline_ns, err);
    keys_free(&k);
    return st;
}

tenrec_status tenrec_store_add(struct tenrec_store *s, const char *key, int64_t delta, int64_t ms,
                               int64_t *ret, tenrec_error *err)
{
    uint64_t deadline_ns = 0;
    int64_t sum = 0;
    struct keys k = { .list = NULL };
    tenrec_status st = begin(s, &key, 1, ms, &k, &deadline_ns, err);

    if (st != TENREC_OK)
        return st;
    st = s->backend->ops->add(s->backend, k.list[0], delta, deadline_ns, &sum, err);
    keys_free(&k);
    if (st == TENREC_OK && ret)
        *ret = sum;
    return st;
}

tenrec_status tenrec_store_compare_set(struct tenrec_store *s, const char *key,
                                       const void *expected, size_t expected_len,
                                       const void *desired, size_t desired_len, int64_t ms,
                                       void **ret, size_t *ret_len, tenrec_error *err)
{
    /* The values are only read. */
    struct store_value from = { (void *)(uintptr_t)expected, expected_len };
    struct store_value to = { (void *)(uintptr_t)desired, desired_len }, now = { 0 };
    uint64_t deadline_ns = 0;
    struct keys k = { .list = NULL };
    tenrec_status st = check_value(desired_len, err);

    if (st == TENREC_OK)
        st = check_value(expected_len, err);
    if (st != TENREC_OK || (st = begin(s, &key, 1, ms, &k, &deadline_ns, err)) != TENREC_OK)
        return st;
    st = s->backend->ops->compare_set(s->backend, k.list[0], &from, &to, deadline_ns, &now, err);
    keys_free(&k);
    if (st != TENREC_OK)
        return st;
    if (ret_len)
        *ret_len = now.len;
    if (ret)
        *ret = now.data;
    else
        free(now.data);
    return TENREC_OK;
}

void store_values_free(struct store_value *values, size_t n)
{
    for (size_t i = 0; values && i < n; i++)
        free(values[i].data);
}

/* "no key "a", "b" and 3 more in <store> after 200 ms" */
static tenrec_status fail_missing(const struct tenrec_store *s, const char *const *keys,
                                  const bool *missing, size_t n, uint64_t since_ns,
                                  tenrec_error *err)
{
    size_t told = 0, n_missing = 0, at = 0;
    char text[200] = "";

    for (size_t i = 0; i < n; i++)
        n_missing += missing[i];
    for (size_t i = 0; i < n && told < MAX_MISSING_TOLD && at < sizeof text - 60; i++) {
        if (!missing[i])
            continue;
        at +=
            (size_t)snprintf(text + at, sizeof text - at, "%s\"%.40s\"", told ? ", " : "", keys[i]);
        told++;
    }
    if (told < n_missing)
        snprintf(text + at, sizeof text - at, " and %zu more", n_missing - told);
    return tenrec_fail(err, TENREC_ETIMEDOUT, "no key %s in %s after %llu ms", text,
                       s->backend->name,
                       (unsigned long long)((clock_now_ns() - since_ns) / 1000000u));
}

/* One wait: whole keys are made, and what is missing is told. */
static tenrec_status get_all(struct tenrec_store *s, const char *const *keys, size_t n,
                             uint64_t deadline_ns, struct store_value *ret, bool *ret_missing,
                             tenrec_error *err)
{
    uint64_t since_ns = clock_now_ns();
    bool one = false, *missing = ret_missing ? ret_missing : &one;
    struct keys k = { .list = NULL };
    tenrec_status st;

    if (!s || (n && !keys))
        return tenrec_fail(err, TENREC_EINVAL, "a store and a key are needed");
    if (n == 0)
        return TENREC_OK;
    if ((st = keys_make(s, keys, n, &k, err)) != TENREC_OK)
        return st;
    if (!ret_missing && n > 1 && !(missing = memory_new(n, sizeof *missing))) {
        keys_free(&k);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu keys", n);
    }
    if (ret)
        memset(ret, 0, n * sizeof *ret);
    st = s->backend->ops->get(s->backend, k.list, n, deadline_ns, ret, missing, err);
    if (st == TENREC_ETIMEDOUT)
        fail_missing(s, keys, missing, n, since_ns, err);
    if (st != TENREC_OK && ret) {
        store_values_free(ret, n);
        memset(ret, 0, n * sizeof *ret);
    }
    if (missing != ret_missing && missing != &one)
        free(missing);
    keys_free(&k);
    return st;
}

tenrec_status store_wait_all(struct tenrec_store *s, const char *const *keys, size_t n,
                             uint64_t deadline_ns, bool *ret_missing, tenrec_error *err)
{
    return get_all(s, keys, n, deadline_ns, NULL, ret_missing, err);
}

tenrec_status store_get_all(struct tenrec_store *s, const char *const *keys, size_t n,
                            uint64_t deadline_ns, struct store_value *ret, bool *ret_missing,
                            tenrec_error *err)
{
    return get_all(s, keys, n, deadline_ns, ret, ret_missing, err);
}

tenrec_status tenrec_store_get(struct tenrec_store *s, const char *key, int64_t ms, void **ret,
                               size_t *ret_len, tenrec_error *err)
{
    struct store_value value;
    uint64_t deadline_ns = 0;
    tenrec_status st = store_deadline(ms, &deadline_ns, err);

    if (st == TENREC_OK && !ret)
        st = tenrec_fail(err, TENREC_EINVAL, "tenrec_store_get needs a result");
    if (st != TENREC_OK || (st = get_all(s, &key, 1, deadline_ns, &value, NULL, err)) != TENREC_OK)
        return st;
    *ret = value.data;
    if (ret_len)
        *ret_len = value.len;
    return TENREC_OK;
}

tenrec_status tenrec_store_wait(struct tenrec_store *s, const char *const *keys, size_t n,
                                int64_t ms, tenrec_error *err)
{
    uint64_t deadline_ns = 0;
    tenrec_status st = store_deadline(ms, &deadline_ns, err);

    return st == TENREC_OK ? get_all(s, keys, n, deadline_ns, NULL, NULL, err) : st;
}

tenrec_status store_check_all(struct tenrec_store *s, const char *const *keys, size_t n,
                              uint64_t deadline_ns, bool *ret_missing, tenrec_error *err)
{
    struct keys k = { .list = NULL };
    tenrec_status st = keys_make(s, keys, n, &k, err);

    if (st == TENREC_OK)
        st = s->backend->ops->check(s->backend, k.list, n, deadline_ns, ret_missing, err);
    keys_free(&k);
    return st;
}

tenrec_status tenrec_store_check(struct tenrec_store *s, const char *const *keys, size_t n,
                                 int64_t ms, bool *ret, tenrec_error *err)
{
    bool *missing, all = true;
    uint64_t deadline_ns = 0;
    struct keys k = { .list = NULL };
    tenrec_status st;

    if (!ret)
        return tenrec_fail(err, TENREC_EINVAL, "tenrec_store_check needs a result");
    if ((st = begin(s, keys, n, ms, &k, &deadline_ns, err)) != TENREC_OK)
        return st;
    if ((missing = memory_new(n, sizeof *missing)))
        st = s->backend->ops->check(s->backend, k.list, n, deadline_ns, missing, err);
    else
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu keys", n);
    for (size_t i = 0; st == TENREC_OK && i < n; i++)
        all &= !missing[i];
    free(missing);
    keys_free(&k);
    if (st == TENREC_OK)
        *ret = all;
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
        /* When it is removed between the two the get waits for another in vain. */
        soon_ns = clock_deadline_ms(READ_MS);
        if (soon_ns > deadline_ns)
            soon_ns = deadline_ns;
        st = store_get_all(s, &key, 1, soon_ns, ret, NULL, err);
        if (st == TENREC_OK || soon_ns == deadline_ns ||
            (st != TENREC_ETIMEDOUT && st != TENREC_EPEER_LOST))
            return st;
    }
}

tenrec_status tenrec_store_delete(struct tenrec_store *s, const char *key, int64_t ms, bool *ret,
                                  tenrec_error *err)
{
    uint64_t deadline_ns = 0;
    size_t n = 0;
    struct keys k = { .list = NULL };
    tenrec_status st = begin(s, &key, 1, ms, &k, &deadline_ns, err);

    if (st != TENREC_OK)
        return st;
    st = s->backend->ops->delete_keys(s->backend, k.list, 1, deadline_ns, &n, err);
    keys_free(&k);
    if (st == TENREC_OK && ret)
        *ret = n > 0;
    return st;
}

tenrec_status store_delete_all(struct tenrec_store *s, const char *const *keys, size_t n,
                               uint64_t deadline_ns, tenrec_error *err)
{
    struct keys k = { .list = NULL };
    size_t gone;
    tenrec_status st;

    if (n == 0)
        return TENREC_OK;
    if ((st = keys_make(s, keys, n, &k, err)) != TENREC_OK)
        return st;
    st = s->backend->ops->delete_keys(s->backend, k.list, n, deadline_ns, &gone, err);
    keys_free(&k);
    return st;
}

tenrec_status tenrec_store_num_keys(struct tenrec_store *s, int64_t ms, int64_t *ret,
                                    tenrec_error *err)
{
    uint64_t deadline_ns = 0;
    tenrec_status st;

    if (!s || !ret)
        return tenrec_fail(err, TENREC_EINVAL, "a store and a result are needed");
    if ((st = store_deadline(ms, &deadline_ns, err)) != TENREC_OK)
        return st;
    return s->backend->ops->num_keys(s->backend, deadline_ns, ret, err);
}

tenrec_status store_count_init(struct tenrec_store *s, uint64_t deadline_ns, tenrec_error *err)
{
    int64_t n;

    return s->backend->ops->add(s->backend, "init/", 1, deadline_ns, &n, err);
}
