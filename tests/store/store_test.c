/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of tenrec/store.h that are the same for every kind of store: limits, views, and the
 * texts of errors. `tenrec conformance` tests the kinds (tests/contract). */
#include "../support/test_store.h"

struct place {
    struct tenrec_store *s;
    tenrec_error err;
};

static struct place *place; /* of the case that runs */

static void place_make(void)
{
    place = calloc(1, sizeof *place);
    assert_status(tenrec_store_open("memory://store_test", TEST_MS, &place->s, &place->err),
                  &place->err);
}

static void place_drop(void)
{
    tenrec_store_close(place->s);
    free(place);
}

static void holds(struct place *p, struct tenrec_store *s, const char *key, const void *value,
                  size_t len)
{
    void *data = NULL;
    size_t got = 0;

    assert_status(tenrec_store_get(s, key, TEST_MS, &data, &got, &p->err), &p->err);
    assert_int_equal(got, len);
    assert_memory_equal(data, value, len + 1); /* the NUL behind it too */
    free(data);
}

static void set_text(struct place *p, struct tenrec_store *s, const char *key, const char *value)
{
    assert_status(tenrec_store_set(s, key, value, strlen(value), TEST_MS, &p->err), &p->err);
}

TEST_WITH(store_get_returns_the_set_value, place_make, place_drop)
{
    set_text(place, place->s, "a", "hello");
    holds(place, place->s, "a", "hello", 5);
    set_text(place, place->s, "a", "bye");
    holds(place, place->s, "a", "bye", 3);
}

TEST_WITH(store_get_times_out_when_key_is_missing, place_make, place_drop)
{
    void *data = NULL;
    size_t len;

    assert_int_equal(tenrec_store_get(place->s, "nobody", 30, &data, &len, &place->err),
                     TENREC_ETIMEDOUT);
    assert_text_has(place->err.text, "\"nobody\"");
    assert_text_has(place->err.text, tenrec_store_name(place->s));
    assert_null(data);
    /* And the store goes on. */
    set_text(place, place->s, "nobody", "came");
    holds(place, place->s, "nobody", "came", 4);
}

TEST_WITH(store_get_looks_once_when_limit_is_zero, place_make, place_drop)
{
    void *data = NULL;
    size_t len;

    assert_int_equal(tenrec_store_get(place->s, "k", 0, &data, &len, &place->err),
                     TENREC_ETIMEDOUT);
    set_text(place, place->s, "k", "v");
    assert_status(tenrec_store_get(place->s, "k", 0, &data, &len, &place->err), &place->err);
    assert_string_equal(data, "v");
    free(data);
}

TEST_WITH(store_wait_names_only_missing_keys, place_make, place_drop)
{
    const char *keys[] = { "here", "gone1", "gone2", "gone3", "gone4", "gone5" };

    set_text(place, place->s, "here", "");
    assert_int_equal(tenrec_store_wait(place->s, keys, 6, 20, &place->err), TENREC_ETIMEDOUT);
    assert_null(strstr(place->err.text, "here"));
    assert_text_has(place->err.text, "\"gone1\"");
    assert_text_has(place->err.text, "and 1 more");
}

TEST_WITH(store_check_tells_whether_all_keys_exist, place_make, place_drop)
{
    const char *keys[] = { "c1", "c2" };
    bool all = true;

    set_text(place, place->s, "c1", "");
    assert_status(tenrec_store_check(place->s, keys, 2, TEST_MS, &all, &place->err), &place->err);
    assert_false(all);
    set_text(place, place->s, "c2", "");
    assert_status(tenrec_store_check(place->s, keys, 2, TEST_MS, &all, &place->err), &place->err);
    assert_true(all);
}

TEST_WITH(store_delete_tells_whether_the_key_existed, place_make, place_drop)
{
    int64_t before, after;
    bool there;

    assert_status(tenrec_store_num_keys(place->s, TEST_MS, &before, &place->err), &place->err);
    set_text(place, place->s, "d", "1");
    assert_status(tenrec_store_num_keys(place->s, TEST_MS, &after, &place->err), &place->err);
    assert_int_equal(after, before + 1);
    assert_status(tenrec_store_delete(place->s, "d", TEST_MS, &there, &place->err), &place->err);
    assert_true(there);
    assert_status(tenrec_store_delete(place->s, "d", TEST_MS, &there, &place->err), &place->err);
    assert_false(there);
    assert_status(tenrec_store_num_keys(place->s, TEST_MS, &after, &place->err), &place->err);
    assert_int_equal(after, before);
}

TEST_WITH(store_views_do_not_see_each_other, place_make, place_drop)
{
    struct tenrec_store *a, *b, *aa;

    assert_status(tenrec_store_open_prefix(place->s, "a", &a, &place->err), &place->err);
    assert_status(tenrec_store_open_prefix(place->s, "b", &b, &place->err), &place->err);
    assert_status(tenrec_store_open_prefix(a, "a", &aa, &place->err), &place->err);
    set_text(place, a, "k", "of a");
    set_text(place, b, "k", "of b");
    set_text(place, aa, "k", "of aa");
    holds(place, a, "k", "of a", 4);
    holds(place, place->s, "b/k", "of b", 4);
    holds(place, place->s, "a/a/k", "of aa", 5);
    tenrec_store_close(a); /* aa keeps the store open */
    holds(place, aa, "k", "of aa", 5);
    tenrec_store_close(aa);
    tenrec_store_close(b);
}

TEST_WITH(store_refuses_too_long_keys_and_values, place_make, place_drop)
{
    char *key = calloc(1, TENREC_STORE_MAX_KEY + 2);

    memset(key, 'k', TENREC_STORE_MAX_KEY);
    assert_int_equal(tenrec_store_set(place->s, key, "", 0, TEST_MS, &place->err), TENREC_ETOOBIG);
    key[TENREC_STORE_MAX_KEY - 1] = '\0'; /* the slash in front counts */
    assert_status(tenrec_store_set(place->s, key, "", 0, TEST_MS, &place->err), &place->err);
    free(key);
    assert_int_equal(
        tenrec_store_set(place->s, "v", "", TENREC_STORE_MAX_VALUE + 1, 10, &place->err),
        TENREC_ETOOBIG);
}

TEST_WITH(store_refuses_negative_limits, place_make, place_drop)
{
    assert_int_equal(tenrec_store_set(place->s, "k", "", 0, -1, &place->err), TENREC_EINVAL);
    assert_text_has(place->err.text, "negative");
}

int main(void)
{
    return testing_run(NULL, NULL);
}
