/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of every store: each case runs on the
 * in-process store, the file store, the TCP store and those of plugins. */
#include "../support/test_store.h"

#include "base/clock.h"

#include <pthread.h>

static const char *kind = "memory";

struct place {
    char url[128];
    char path[64];
    struct tenrec_store_server *server;
    struct tenrec_store *s;
    tenrec_error err;
};

static struct place *place; /* of the case that runs */

static void place_make(void)
{
    static int count;
    struct place *p = calloc(1, sizeof *p);
    uint16_t port;
    int fd;

    snprintf(p->path, sizeof p->path, "/tmp/tenrec-store-XXXXXX");
    if (strcmp(kind, "memory") == 0)
        snprintf(p->url, sizeof p->url, "memory://contract%d", count++);
    if (strcmp(kind, "drawer") == 0)
        snprintf(p->url, sizeof p->url, "drawer://contract%d", count++);
    if (strcmp(kind, "redis") == 0) /* each case has keys of its own */
        snprintf(p->url, sizeof p->url, "%scontract%d", getenv("TENREC_TEST_REDIS"), count++);
    if (strcmp(kind, "file") == 0) {
        fd = mkstemp(p->path);
        assert_true(fd >= 0);
        close(fd);
        snprintf(p->url, sizeof p->url, "file://%s", p->path);
    }
    if (strcmp(kind, "tcp") == 0) {
        assert_status(tenrec_store_server_new("127.0.0.1", 0, &p->server, &port, &p->err), &p->err);
        snprintf(p->url, sizeof p->url, "tcp://127.0.0.1:%u", port);
    }
    assert_status(tenrec_store_open(p->url, TEST_MS, &p->s, &p->err), &p->err);
    place = p;
}

static void place_drop(void)
{
    tenrec_store_close(place->s);
    tenrec_store_server_drop(place->server);
    unlink(place->path);
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

TEST_WITH(store_keeps_empty_and_binary_values, place_make, place_drop)
{
    assert_status(tenrec_store_set(place->s, "none", NULL, 0, TEST_MS, &place->err), &place->err);
    holds(place, place->s, "none", "", 0);
    assert_status(tenrec_store_set(place->s, "bin", "\0\1\377\n", 4, TEST_MS, &place->err),
                  &place->err);
    holds(place, place->s, "bin", "\0\1\377\n", 4);
}

TEST_WITH(store_keeps_large_values, place_make, place_drop)
{
    size_t len = TENREC_STORE_MAX_VALUE;
    char *big = calloc(1, len + 1);

    for (size_t i = 0; i < len; i++)
        big[i] = (char)(i * 7 + i / 4096);
    assert_status(tenrec_store_set(place->s, "big", big, len, TEST_MS, &place->err), &place->err);
    holds(place, place->s, "big", big, len);
    free(big);
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

struct setter {
    struct place *p;
    const char *key;
    tenrec_error err;
};

static void *set_from_thread(void *arg)
{
    struct setter *t = arg;
    struct tenrec_store *own;
    tenrec_error err;

    if (tenrec_store_open(t->p->url, TEST_MS, &own, &err) != TENREC_OK)
        return err.text[0] ? (void *)"cannot open" : NULL;
    tenrec_store_set(own, t->key, "x", 1, TEST_MS, &err);
    tenrec_store_close(own);
    return NULL;
}

TEST_WITH(store_wait_ends_when_other_threads_set, place_make, place_drop)
{
    const char *keys[] = { "one", "two" };
    struct setter t1 = { .p = place, .key = "one" }, t2 = { .p = place, .key = "two" };
    pthread_t a, b;

    assert_int_equal(pthread_create(&a, NULL, set_from_thread, &t1), 0);
    assert_int_equal(pthread_create(&b, NULL, set_from_thread, &t2), 0);
    assert_status(tenrec_store_wait(place->s, keys, 2, TEST_MS, &place->err), &place->err);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
}

static void *wait_from_thread(void *arg)
{
    struct setter *t = arg;

    return tenrec_store_wait(t->p->s, &t->key, 1, TEST_MS, &t->err) == TENREC_OK ? NULL
                                                                                 : t->err.text;
}

/* A wait on a handle keeps no other thread from setting through the same. */
TEST_WITH(store_set_works_while_another_thread_waits, place_make, place_drop)
{
    struct setter t = { .p = place, .key = "late" };
    void *failed = NULL;
    pthread_t waiter;

    assert_int_equal(pthread_create(&waiter, NULL, wait_from_thread, &t), 0);
    for (int i = 0; i < 20; i++)
        set_text(place, place->s, "other", "v");
    set_text(place, place->s, "late", "v");
    pthread_join(waiter, &failed);
    if (failed)
        fail_msg("%s", (char *)failed);
}

TEST_WITH(store_add_counts_in_decimal_text, place_make, place_drop)
{
    int64_t n = 0;

    assert_status(tenrec_store_add(place->s, "n", 5, TEST_MS, &n, &place->err), &place->err);
    assert_int_equal(n, 5);
    assert_status(tenrec_store_add(place->s, "n", -7, TEST_MS, &n, &place->err), &place->err);
    assert_int_equal(n, -2);
    holds(place, place->s, "n", "-2", 2);
    set_text(place, place->s, "n", "40");
    assert_status(tenrec_store_add(place->s, "n", 2, TEST_MS, NULL, &place->err), &place->err);
    holds(place, place->s, "n", "42", 2);
}

TEST_WITH(store_add_is_refused_when_value_is_no_number, place_make, place_drop)
{
    int64_t n = 77;

    set_text(place, place->s, "word", "seven");
    assert_int_equal(tenrec_store_add(place->s, "word", 1, TEST_MS, &n, &place->err),
                     TENREC_EINVAL);
    assert_text_has(place->err.text, "word");
    assert_int_equal(n, 77);
    holds(place, place->s, "word", "seven", 5);
}

static void expect_compare_set(struct place *p, const char *expected, const char *desired,
                               const char *answer)
{
    void *data = NULL;
    size_t len;

    assert_status(tenrec_store_compare_set(p->s, "cs", expected, strlen(expected), desired,
                                           strlen(desired), TEST_MS, &data, &len, &p->err),
                  &p->err);
    assert_string_equal(data, answer);
    assert_int_equal(len, strlen(answer));
    free(data);
}

TEST_WITH(store_compare_set_swaps_only_when_equal, place_make, place_drop)
{
    const char *key = "cs";
    bool there = true;

    expect_compare_set(place, "x", "y", "x"); /* missing and not expected so */
    assert_status(tenrec_store_check(place->s, &key, 1, TEST_MS, &there, &place->err), &place->err);
    assert_false(there);
    expect_compare_set(place, "", "first", "first");
    expect_compare_set(place, "", "second", "first");
    expect_compare_set(place, "first", "third", "third");
    holds(place, place->s, "cs", "third", 5);
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

TEST_WITH(store_is_shared_by_all_clients, place_make, place_drop)
{
    struct tenrec_store *other;

    assert_status(tenrec_store_open(place->url, TEST_MS, &other, &place->err), &place->err);
    set_text(place, place->s, "k", "v");
    holds(place, other, "k", "v", 1);
    tenrec_store_close(other);
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

#define N_THREADS 8
#define N_ADDS 50

static void *add_from_thread(void *arg)
{
    struct place *p = arg;
    tenrec_error err;

    for (int i = 0; i < N_ADDS; i++)
        if (tenrec_store_add(p->s, "sum", 1, TEST_MS, NULL, &err) != TENREC_OK)
            return arg;
    return NULL;
}

TEST_WITH(store_add_loses_nothing_between_threads, place_make, place_drop)
{
    pthread_t thread[N_THREADS];
    void *failed;
    int64_t sum;

    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, add_from_thread, place), 0);
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(thread[i], &failed);
        assert_null(failed);
    }
    assert_status(tenrec_store_add(place->s, "sum", 0, TEST_MS, &sum, &place->err), &place->err);
    assert_int_equal(sum, N_THREADS * N_ADDS);
}

/* One kind for each run of the program: memory, file, tcp, drawer or redis. */
int main(int argc, char **argv)
{
    if (argc > 1)
        kind = argv[1];
    return testing_run(NULL, NULL);
}
