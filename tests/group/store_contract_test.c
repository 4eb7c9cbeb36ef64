/* SPDX-License-Identifier: Apache-2.0 */
/* What every store does, whatever is behind it: each case runs on the
 * in-process store, the file store, the TCP store and those of plugins. */
#include "test_store.h"

#include "base/clock.h"

#include <pthread.h>

enum kind { MEMORY, FILE_STORE, TCP, DRAWER, REDIS };

struct place {
    char url[128];
    char path[64];
    struct tenrec_store_server *server;
    struct tenrec_store *s;
    tenrec_error err;
};

static int place_make(void **state, enum kind kind)
{
    static int count;
    struct place *p = calloc(1, sizeof *p);
    uint16_t port;
    int fd;

    snprintf(p->path, sizeof p->path, "/tmp/tenrec-store-XXXXXX");
    if (kind == MEMORY)
        snprintf(p->url, sizeof p->url, "memory://contract%d", count++);
    if (kind == DRAWER)
        snprintf(p->url, sizeof p->url, "drawer://contract%d", count++);
    if (kind == REDIS) /* each case has keys of its own */
        snprintf(p->url, sizeof p->url, "%scontract%d", getenv("TENREC_TEST_REDIS"), count++);
    if (kind == FILE_STORE) {
        fd = mkstemp(p->path);
        assert_true(fd >= 0);
        close(fd);
        snprintf(p->url, sizeof p->url, "file://%s", p->path);
    }
    if (kind == TCP) {
        assert_status(tenrec_store_serve("127.0.0.1", 0, &p->server, &port, &p->err), &p->err);
        snprintf(p->url, sizeof p->url, "tcp://127.0.0.1:%u", port);
    }
    assert_status(tenrec_store_open(p->url, TEST_MS, &p->s, &p->err), &p->err);
    *state = p;
    return 0;
}

static int make_memory(void **state)
{
    return place_make(state, MEMORY);
}

static int make_file(void **state)
{
    return place_make(state, FILE_STORE);
}

static int make_tcp(void **state)
{
    return place_make(state, TCP);
}

static int make_drawer(void **state)
{
    return place_make(state, DRAWER);
}

static int make_redis(void **state)
{
    return place_make(state, REDIS);
}

static int place_drop(void **state)
{
    struct place *p = *state;

    tenrec_store_drop(p->s);
    tenrec_store_server_drop(p->server);
    unlink(p->path);
    free(p);
    return 0;
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

static void store_get_returns_what_was_set(void **state)
{
    struct place *p = *state;

    set_text(p, p->s, "a", "hello");
    holds(p, p->s, "a", "hello", 5);
    set_text(p, p->s, "a", "bye");
    holds(p, p->s, "a", "bye", 3);
}

static void store_keeps_empty_and_binary_values(void **state)
{
    struct place *p = *state;

    assert_status(tenrec_store_set(p->s, "none", NULL, 0, TEST_MS, &p->err), &p->err);
    holds(p, p->s, "none", "", 0);
    assert_status(tenrec_store_set(p->s, "bin", "\0\1\377\n", 4, TEST_MS, &p->err), &p->err);
    holds(p, p->s, "bin", "\0\1\377\n", 4);
}

static void store_keeps_large_values(void **state)
{
    struct place *p = *state;
    size_t len = TENREC_STORE_MAX_VALUE;
    char *big = calloc(1, len + 1);

    for (size_t i = 0; i < len; i++)
        big[i] = (char)(i * 7 + i / 4096);
    assert_status(tenrec_store_set(p->s, "big", big, len, TEST_MS, &p->err), &p->err);
    holds(p, p->s, "big", big, len);
    free(big);
}

static void store_get_times_out_when_key_is_missing(void **state)
{
    struct place *p = *state;
    void *data = NULL;
    size_t len;

    assert_int_equal(tenrec_store_get(p->s, "nobody", 30, &data, &len, &p->err), TENREC_ETIMEDOUT);
    assert_text_has(p->err.text, "\"nobody\"");
    assert_text_has(p->err.text, tenrec_store_name(p->s));
    assert_null(data);
    /* And the store goes on. */
    set_text(p, p->s, "nobody", "came");
    holds(p, p->s, "nobody", "came", 4);
}

static void store_get_looks_once_when_limit_is_zero(void **state)
{
    struct place *p = *state;
    void *data = NULL;
    size_t len;

    assert_int_equal(tenrec_store_get(p->s, "k", 0, &data, &len, &p->err), TENREC_ETIMEDOUT);
    set_text(p, p->s, "k", "v");
    assert_status(tenrec_store_get(p->s, "k", 0, &data, &len, &p->err), &p->err);
    assert_string_equal(data, "v");
    free(data);
}

static void store_wait_names_only_missing_keys(void **state)
{
    struct place *p = *state;
    const char *keys[] = { "here", "gone1", "gone2", "gone3", "gone4", "gone5" };

    set_text(p, p->s, "here", "");
    assert_int_equal(tenrec_store_wait(p->s, keys, 6, 20, &p->err), TENREC_ETIMEDOUT);
    assert_null(strstr(p->err.text, "here"));
    assert_text_has(p->err.text, "\"gone1\"");
    assert_text_has(p->err.text, "and 1 more");
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
    tenrec_store_drop(own);
    return NULL;
}

static void store_wait_ends_when_others_set(void **state)
{
    struct place *p = *state;
    const char *keys[] = { "one", "two" };
    struct setter t1 = { .p = p, .key = "one" }, t2 = { .p = p, .key = "two" };
    pthread_t a, b;

    assert_int_equal(pthread_create(&a, NULL, set_from_thread, &t1), 0);
    assert_int_equal(pthread_create(&b, NULL, set_from_thread, &t2), 0);
    assert_status(tenrec_store_wait(p->s, keys, 2, TEST_MS, &p->err), &p->err);
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
static void store_set_works_while_another_thread_waits(void **state)
{
    struct place *p = *state;
    struct setter t = { .p = p, .key = "late" };
    void *failed = NULL;
    pthread_t waiter;

    assert_int_equal(pthread_create(&waiter, NULL, wait_from_thread, &t), 0);
    for (int i = 0; i < 20; i++)
        set_text(p, p->s, "other", "v");
    set_text(p, p->s, "late", "v");
    pthread_join(waiter, &failed);
    if (failed)
        fail_msg("%s", (char *)failed);
}

static void store_add_counts_in_decimal_text(void **state)
{
    struct place *p = *state;
    int64_t n = 0;

    assert_status(tenrec_store_add(p->s, "n", 5, TEST_MS, &n, &p->err), &p->err);
    assert_int_equal(n, 5);
    assert_status(tenrec_store_add(p->s, "n", -7, TEST_MS, &n, &p->err), &p->err);
    assert_int_equal(n, -2);
    holds(p, p->s, "n", "-2", 2);
    set_text(p, p->s, "n", "40");
    assert_status(tenrec_store_add(p->s, "n", 2, TEST_MS, NULL, &p->err), &p->err);
    holds(p, p->s, "n", "42", 2);
}

static void store_add_is_refused_when_value_is_no_number(void **state)
{
    struct place *p = *state;
    int64_t n = 77;

    set_text(p, p->s, "word", "seven");
    assert_int_equal(tenrec_store_add(p->s, "word", 1, TEST_MS, &n, &p->err), TENREC_EINVAL);
    assert_text_has(p->err.text, "word");
    assert_int_equal(n, 77);
    holds(p, p->s, "word", "seven", 5);
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

static void store_compare_set_swaps_only_when_equal(void **state)
{
    struct place *p = *state;
    const char *key = "cs";
    bool there = true;

    expect_compare_set(p, "x", "y", "x"); /* missing and not expected so */
    assert_status(tenrec_store_check(p->s, &key, 1, TEST_MS, &there, &p->err), &p->err);
    assert_false(there);
    expect_compare_set(p, "", "first", "first");
    expect_compare_set(p, "", "second", "first");
    expect_compare_set(p, "first", "third", "third");
    holds(p, p->s, "cs", "third", 5);
}

static void store_check_tells_whether_all_are_there(void **state)
{
    struct place *p = *state;
    const char *keys[] = { "c1", "c2" };
    bool all = true;

    set_text(p, p->s, "c1", "");
    assert_status(tenrec_store_check(p->s, keys, 2, TEST_MS, &all, &p->err), &p->err);
    assert_false(all);
    set_text(p, p->s, "c2", "");
    assert_status(tenrec_store_check(p->s, keys, 2, TEST_MS, &all, &p->err), &p->err);
    assert_true(all);
}

static void store_delete_tells_whether_it_was_there(void **state)
{
    struct place *p = *state;
    int64_t before, after;
    bool there;

    assert_status(tenrec_store_num_keys(p->s, TEST_MS, &before, &p->err), &p->err);
    set_text(p, p->s, "d", "1");
    assert_status(tenrec_store_num_keys(p->s, TEST_MS, &after, &p->err), &p->err);
    assert_int_equal(after, before + 1);
    assert_status(tenrec_store_delete(p->s, "d", TEST_MS, &there, &p->err), &p->err);
    assert_true(there);
    assert_status(tenrec_store_delete(p->s, "d", TEST_MS, &there, &p->err), &p->err);
    assert_false(there);
    assert_status(tenrec_store_num_keys(p->s, TEST_MS, &after, &p->err), &p->err);
    assert_int_equal(after, before);
}

static void store_views_do_not_see_each_other(void **state)
{
    struct place *p = *state;
    struct tenrec_store *a, *b, *aa;

    assert_status(tenrec_store_prefix(p->s, "a", &a, &p->err), &p->err);
    assert_status(tenrec_store_prefix(p->s, "b", &b, &p->err), &p->err);
    assert_status(tenrec_store_prefix(a, "a", &aa, &p->err), &p->err);
    set_text(p, a, "k", "of a");
    set_text(p, b, "k", "of b");
    set_text(p, aa, "k", "of aa");
    holds(p, a, "k", "of a", 4);
    holds(p, p->s, "b/k", "of b", 4);
    holds(p, p->s, "a/a/k", "of aa", 5);
    tenrec_store_drop(a); /* aa keeps the store open */
    holds(p, aa, "k", "of aa", 5);
    tenrec_store_drop(aa);
    tenrec_store_drop(b);
}

static void store_is_shared_by_all_who_open_it(void **state)
{
    struct place *p = *state;
    struct tenrec_store *other;

    assert_status(tenrec_store_open(p->url, TEST_MS, &other, &p->err), &p->err);
    set_text(p, p->s, "k", "v");
    holds(p, other, "k", "v", 1);
    tenrec_store_drop(other);
}

static void store_refuses_what_is_too_long(void **state)
{
    struct place *p = *state;
    char *key = calloc(1, TENREC_STORE_MAX_KEY + 2);

    memset(key, 'k', TENREC_STORE_MAX_KEY);
    assert_int_equal(tenrec_store_set(p->s, key, "", 0, TEST_MS, &p->err), TENREC_ETOOBIG);
    key[TENREC_STORE_MAX_KEY - 1] = '\0'; /* the slash in front counts */
    assert_status(tenrec_store_set(p->s, key, "", 0, TEST_MS, &p->err), &p->err);
    free(key);
    assert_int_equal(tenrec_store_set(p->s, "v", "", TENREC_STORE_MAX_VALUE + 1, 10, &p->err),
                     TENREC_ETOOBIG);
}

static void store_refuses_negative_limits(void **state)
{
    struct place *p = *state;

    assert_int_equal(tenrec_store_set(p->s, "k", "", 0, -1, &p->err), TENREC_EINVAL);
    assert_text_has(p->err.text, "negative");
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

static void store_add_loses_nothing_between_threads(void **state)
{
    struct place *p = *state;
    pthread_t thread[N_THREADS];
    void *failed;
    int64_t sum;

    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, add_from_thread, p), 0);
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(thread[i], &failed);
        assert_null(failed);
    }
    assert_status(tenrec_store_add(p->s, "sum", 0, TEST_MS, &sum, &p->err), &p->err);
    assert_int_equal(sum, N_THREADS * N_ADDS);
}

#define CASE(f, kind) cmocka_unit_test_setup_teardown(f, make_##kind, place_drop)
#define ALL(kind)                                                                                  \
    {                                                                                              \
        CASE(store_get_returns_what_was_set, kind),                                                \
            CASE(store_keeps_empty_and_binary_values, kind), CASE(store_keeps_large_values, kind), \
            CASE(store_get_times_out_when_key_is_missing, kind),                                   \
            CASE(store_get_looks_once_when_limit_is_zero, kind),                                   \
            CASE(store_wait_names_only_missing_keys, kind),                                        \
            CASE(store_wait_ends_when_others_set, kind),                                           \
            CASE(store_set_works_while_another_thread_waits, kind),                                \
            CASE(store_add_counts_in_decimal_text, kind),                                          \
            CASE(store_add_is_refused_when_value_is_no_number, kind),                              \
            CASE(store_compare_set_swaps_only_when_equal, kind),                                   \
            CASE(store_check_tells_whether_all_are_there, kind),                                   \
            CASE(store_delete_tells_whether_it_was_there, kind),                                   \
            CASE(store_views_do_not_see_each_other, kind),                                         \
            CASE(store_is_shared_by_all_who_open_it, kind),                                        \
            CASE(store_refuses_what_is_too_long, kind), CASE(store_refuses_negative_limits, kind), \
            CASE(store_add_loses_nothing_between_threads, kind),                                   \
    }

/* One kind for each run of the program: memory, file, tcp, drawer or redis. */
int main(int argc, char **argv)
{
    const struct CMUnitTest memory[] = ALL(memory);
    const struct CMUnitTest file[] = ALL(file);
    const struct CMUnitTest tcp[] = ALL(tcp);
    const struct CMUnitTest drawer[] = ALL(drawer);
    const struct CMUnitTest redis[] = ALL(redis);
    const char *kind = argc > 1 ? argv[1] : "memory";

    if (strcmp(kind, "file") == 0)
        return cmocka_run_group_tests_name("file", file, NULL, NULL);
    if (strcmp(kind, "tcp") == 0)
        return cmocka_run_group_tests_name("tcp", tcp, NULL, NULL);
    if (strcmp(kind, "drawer") == 0)
        return cmocka_run_group_tests_name("drawer", drawer, NULL, NULL);
    if (strcmp(kind, "redis") == 0)
        return cmocka_run_group_tests_name("redis", redis, NULL, NULL);
    return cmocka_run_group_tests_name("memory", memory, NULL, NULL);
}
