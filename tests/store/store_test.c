/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of tenrec/store.h that are the same for every kind of store: limits, views, and the
 * texts of errors. `tenrec conformance` tests the kinds (tests/contract). */
#include "../support/test_store.h"

struct fixture {
    struct tenrec_store *s;
    tenrec_error err;
};

static struct fixture *fixture; /* of the case that runs */

static void fixture_make(void)
{
    fixture = calloc(1, sizeof *fixture);
    assert_status(tenrec_store_open("memory://store_test", TEST_MS, &fixture->s, &fixture->err),
                  &fixture->err);
}

static void fixture_drop(void)
{
    tenrec_store_close(fixture->s);
    free(fixture);
}

static void holds(struct fixture *p, struct tenrec_store *s, const char *key, const void *value,
                  size_t len)
{
    void *data = NULL;
    size_t got = 0;

    assert_status(tenrec_store_get(s, key, TEST_MS, &data, &got, &p->err), &p->err);
    assert_int_equal(got, len);
    assert_memory_equal(data, value, len + 1); /* the NUL behind it too */
    free(data);
}

static void set_text(struct fixture *p, struct tenrec_store *s, const char *key, const char *value)
{
    assert_status(tenrec_store_set(s, key, value, strlen(value), TEST_MS, &p->err), &p->err);
}

TEST_WITH(store_get_returns_the_set_value, fixture_make, fixture_drop)
{
    set_text(fixture, fixture->s, "a", "hello");
    holds(fixture, fixture->s, "a", "hello", 5);
    set_text(fixture, fixture->s, "a", "bye");
    holds(fixture, fixture->s, "a", "bye", 3);
}

TEST_WITH(store_get_times_out_when_key_is_missing, fixture_make, fixture_drop)
{
    void *data = NULL;
    size_t len;

    assert_int_equal(tenrec_store_get(fixture->s, "nobody", 30, &data, &len, &fixture->err),
                     TENREC_ETIMEDOUT);
    assert_text_has(fixture->err.text, "\"nobody\"");
    assert_text_has(fixture->err.text, tenrec_store_name(fixture->s));
    assert_null(data);
    /* And the store goes on. */
    set_text(fixture, fixture->s, "nobody", "came");
    holds(fixture, fixture->s, "nobody", "came", 4);
}

TEST_WITH(store_get_looks_once_when_limit_is_zero, fixture_make, fixture_drop)
{
    void *data = NULL;
    size_t len;

    assert_int_equal(tenrec_store_get(fixture->s, "k", 0, &data, &len, &fixture->err),
                     TENREC_ETIMEDOUT);
    set_text(fixture, fixture->s, "k", "v");
    assert_status(tenrec_store_get(fixture->s, "k", 0, &data, &len, &fixture->err), &fixture->err);
    assert_string_equal(data, "v");
    free(data);
}

TEST_WITH(store_wait_names_only_missing_keys, fixture_make, fixture_drop)
{
    const char *keys[] = { "here", "gone1", "gone2", "gone3", "gone4", "gone5" };

    set_text(fixture, fixture->s, "here", "");
    assert_int_equal(tenrec_store_wait(fixture->s, keys, 6, 20, &fixture->err), TENREC_ETIMEDOUT);
    assert_null(strstr(fixture->err.text, "here"));
    assert_text_has(fixture->err.text, "\"gone1\"");
    assert_text_has(fixture->err.text, "and 1 more");
}

TEST_WITH(store_check_tells_whether_all_keys_exist, fixture_make, fixture_drop)
{
    const char *keys[] = { "c1", "c2" };
    bool all = true;

    set_text(fixture, fixture->s, "c1", "");
    assert_status(tenrec_store_check(fixture->s, keys, 2, TEST_MS, &all, &fixture->err),
                  &fixture->err);
    assert_false(all);
    set_text(fixture, fixture->s, "c2", "");
    assert_status(tenrec_store_check(fixture->s, keys, 2, TEST_MS, &all, &fixture->err),
                  &fixture->err);
    assert_true(all);
}

TEST_WITH(store_delete_tells_whether_the_key_existed, fixture_make, fixture_drop)
{
    int64_t before, after;
    bool there;

    assert_status(tenrec_store_num_keys(fixture->s, TEST_MS, &before, &fixture->err),
                  &fixture->err);
    set_text(fixture, fixture->s, "d", "1");
    assert_status(tenrec_store_num_keys(fixture->s, TEST_MS, &after, &fixture->err), &fixture->err);
    assert_int_equal(after, before + 1);
    assert_status(tenrec_store_delete(fixture->s, "d", TEST_MS, &there, &fixture->err),
                  &fixture->err);
    assert_true(there);
    assert_status(tenrec_store_delete(fixture->s, "d", TEST_MS, &there, &fixture->err),
                  &fixture->err);
    assert_false(there);
    assert_status(tenrec_store_num_keys(fixture->s, TEST_MS, &after, &fixture->err), &fixture->err);
    assert_int_equal(after, before);
}

TEST_WITH(store_views_do_not_see_each_other, fixture_make, fixture_drop)
{
    struct tenrec_store *a, *b, *aa;

    assert_status(tenrec_store_open_prefix(fixture->s, "a", &a, &fixture->err), &fixture->err);
    assert_status(tenrec_store_open_prefix(fixture->s, "b", &b, &fixture->err), &fixture->err);
    assert_status(tenrec_store_open_prefix(a, "a", &aa, &fixture->err), &fixture->err);
    set_text(fixture, a, "k", "of a");
    set_text(fixture, b, "k", "of b");
    set_text(fixture, aa, "k", "of aa");
    holds(fixture, a, "k", "of a", 4);
    holds(fixture, fixture->s, "b/k", "of b", 4);
    holds(fixture, fixture->s, "a/a/k", "of aa", 5);
    tenrec_store_close(a); /* aa keeps the store open */
    holds(fixture, aa, "k", "of aa", 5);
    tenrec_store_close(aa);
    tenrec_store_close(b);
}

TEST_WITH(store_refuses_too_long_keys_and_values, fixture_make, fixture_drop)
{
    char *key = calloc(1, TENREC_STORE_MAX_KEY + 2);

    memset(key, 'k', TENREC_STORE_MAX_KEY);
    assert_int_equal(tenrec_store_set(fixture->s, key, "", 0, TEST_MS, &fixture->err),
                     TENREC_ETOOBIG);
    key[TENREC_STORE_MAX_KEY - 1] = '\0'; /* the slash in front counts */
    assert_status(tenrec_store_set(fixture->s, key, "", 0, TEST_MS, &fixture->err), &fixture->err);
    free(key);
    assert_int_equal(
        tenrec_store_set(fixture->s, "v", "", TENREC_STORE_MAX_VALUE + 1, 10, &fixture->err),
        TENREC_ETOOBIG);
}

TEST_WITH(store_refuses_negative_limits, fixture_make, fixture_drop)
{
    assert_int_equal(tenrec_store_set(fixture->s, "k", "", 0, -1, &fixture->err), TENREC_EINVAL);
    assert_text_has(fixture->err.text, "negative");
}

int main(void)
{
    return testing_run(NULL, NULL);
}
