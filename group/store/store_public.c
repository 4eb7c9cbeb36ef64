/* SPDX-License-Identifier: Apache-2.0 */
/* store_public.c - the public functions of stores: limits in milliseconds become deadlines. */
#include "core/base/clock.h"
#include "core/base/memory.h"
#include "group/store/store.h"

#include <stdlib.h>
#include <string.h>

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

tenrec_status tenrec_store_set(struct tenrec_store *s, const char *key, const void *data,
                               size_t len, int64_t ms, tenrec_error *err)
{
    uint64_t deadline_ns;
    tenrec_status st = store_deadline(ms, &deadline_ns, err);

    return st == TENREC_OK ? store_set(s, key, data, len, deadline_ns, err) : st;
}

tenrec_status tenrec_store_add(struct tenrec_store *s, const char *key, int64_t delta, int64_t ms,
                               int64_t *ret, tenrec_error *err)
{
    uint64_t deadline_ns;
    tenrec_status st = store_deadline(ms, &deadline_ns, err);

    if (ret)
        *ret = 0;
    return st == TENREC_OK ? store_add(s, key, delta, deadline_ns, ret, err) : st;
}

tenrec_status tenrec_store_compare_set(struct tenrec_store *s, const char *key,
                                       const void *expected, size_t expected_len,
                                       const void *desired, size_t desired_len, int64_t ms,
                                       void **ret, size_t *ret_len, tenrec_error *err)
{
    /* The values are only read. */
    const struct store_value from = { (void *)(uintptr_t)expected, expected_len };
    const struct store_value to = { (void *)(uintptr_t)desired, desired_len };
    struct store_value now;
    uint64_t deadline_ns;
    tenrec_status st = store_deadline(ms, &deadline_ns, err);

    if (ret)
        *ret = NULL;
    if (ret_len)
        *ret_len = 0;
    if (st == TENREC_OK)
        st = store_compare_set(s, key, &from, &to, deadline_ns, &now, err);
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

tenrec_status tenrec_store_get(struct tenrec_store *s, const char *key, int64_t ms, void **ret,
                               size_t *ret_len, tenrec_error *err)
{
    struct store_value value;
    uint64_t deadline_ns;
    tenrec_status st = store_deadline(ms, &deadline_ns, err);

    if (ret)
        *ret = NULL;
    if (ret_len)
        *ret_len = 0;
    if (st == TENREC_OK && !ret)
        st = tenrec_fail(err, TENREC_EINVAL, "tenrec_store_get needs a result");
    if (st == TENREC_OK)
        st = store_get_all(s, &key, 1, deadline_ns, &value, NULL, err);
    if (st != TENREC_OK)
        return st;
    *ret = value.data;
    if (ret_len)
        *ret_len = value.len;
    return TENREC_OK;
}

tenrec_status tenrec_store_wait(struct tenrec_store *s, const char *const *keys, size_t n,
                                int64_t ms, tenrec_error *err)
{
    uint64_t deadline_ns;
    tenrec_status st = store_deadline(ms, &deadline_ns, err);

    return st == TENREC_OK ? store_get_all(s, keys, n, deadline_ns, NULL, NULL, err) : st;
}

tenrec_status tenrec_store_check(struct tenrec_store *s, const char *const *keys, size_t n,
                                 int64_t ms, bool *ret, tenrec_error *err)
{
    uint64_t deadline_ns;
    bool *missing, all = true;
    tenrec_status st = store_deadline(ms, &deadline_ns, err);

    if (ret)
        *ret = false;
    if (st == TENREC_OK && !ret)
        st = tenrec_fail(err, TENREC_EINVAL, "tenrec_store_check needs a result");
    if (st != TENREC_OK)
        return st;
    if (!(missing = memory_new(n, sizeof *missing)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu keys", n);
    st = store_check_all(s, keys, n, deadline_ns, missing, err);
    for (size_t i = 0; st == TENREC_OK && i < n; i++)
        all &= !missing[i];
    free(missing);
    if (st == TENREC_OK)
        *ret = all;
    return st;
}

tenrec_status tenrec_store_delete(struct tenrec_store *s, const char *key, int64_t ms, bool *ret,
                                  tenrec_error *err)
{
    uint64_t deadline_ns;
    size_t gone = 0;
    tenrec_status st = store_deadline(ms, &deadline_ns, err);

    if (ret)
        *ret = false;
    if (st == TENREC_OK)
        st = store_remove_all(s, &key, 1, deadline_ns, &gone, err);
    if (st == TENREC_OK && ret)
        *ret = gone > 0;
    return st;
}

tenrec_status tenrec_store_num_keys(struct tenrec_store *s, int64_t ms, int64_t *ret,
                                    tenrec_error *err)
{
    uint64_t deadline_ns;
    tenrec_status st = store_deadline(ms, &deadline_ns, err);

    if (ret)
        *ret = 0;
    if (st == TENREC_OK && (!s || !ret))
        st = tenrec_fail(err, TENREC_EINVAL, "a store and a result are needed");
    return st == TENREC_OK ? store_num_keys(s, deadline_ns, ret, err) : st;
}
