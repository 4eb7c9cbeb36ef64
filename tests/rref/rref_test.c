/* SPDX-License-Identifier: Apache-2.0 */
/* References through the public interface, on every backend. */
#include "../support/functions.h"
#include "../testing.h"
#include "rref_support.h"

static struct cluster c;

static const char *const quick[] = { "worker.rref_retry_gap=5ms", NULL };

static void open_three(void)
{
    cluster_open(&c, 3, quick, rref_functions);
    for (size_t i = 0; i < c.n; i++)
        tenrec_worker_set_rref_leak_check(c.worker[i], true);
}

static void close_all(void)
{
    cluster_close(&c, TENREC_GRACEFUL);
    assert_int_equal(tables_alive(), 0);
}

/* ---- made and fetched ------------------------------------------------------- */

TEST_WITH(rref_brings_its_value_here_when_asked, open_three, close_all)
{
    struct tenrec_rref *r = remote_int(c.worker[0], "worker1", 42);

    assert_int_equal(int_of(r), 42);
    assert_false(tenrec_rref_is_owner(r));
    assert_int_equal(tenrec_rref_owner(r), 1);
    assert_string_equal(tenrec_rref_owner_name(r), "worker1");
    wait_owners_and_forks(c.worker[1], 1, 1);
    tenrec_rref_drop(r);
    wait_owners_and_forks(c.worker[1], 0, 0);
}

TEST_WITH(rref_to_oneself_brings_its_value_when_asked, open_three, close_all)
{
    const struct tenrec_value *v;
    struct tenrec_rref *r = remote_int(c.worker[0], "worker0", 7);
    tenrec_error err;

    assert_true(tenrec_rref_is_owner(r));
    assert_true(tenrec_rref_confirmed_by_owner(r));
    expect_ok(tenrec_rref_local_value(r, CLUSTER_LONG_MS, &v, &err), err);
    assert_int_equal(v->u.integer, 7);
    assert_int_equal(int_of(r), 7);
    tenrec_rref_drop(r);
    wait_owners_and_forks(c.worker[0], 0, 0);
}

TEST_WITH(rref_is_confirmed_by_its_owner_when_created, open_three, close_all)
{
    struct tenrec_rref *r = remote_int(c.worker[0], "worker1", 1);
    struct tenrec_future *f = NULL;
    tenrec_error err;

    expect_ok(tenrec_rref_future(r, &f, &err), err);
    expect_ok(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), err);
    assert_true(tenrec_rref_confirmed_by_owner(r));
    tenrec_future_drop(f);
    tenrec_rref_drop(r);
}

TEST_WITH(rref_of_a_local_value_is_counted_when_shared, open_three, close_all)
{
    struct tenrec_rref *r = new_int(c.worker[0], 5);
    struct tenrec_value arg = tenrec_value_rref(r);

    wait_owners_and_forks(c.worker[0], 0, 0);
    assert_int_equal(call_int(c.worker[0], "worker1", "keep", &arg, 1), 0);
    wait_owners_and_forks(c.worker[0], 1, 1);
    tenrec_rref_drop(r);
    assert_int_equal(call_int(c.worker[0], "worker1", "kept", NULL, 0), 5);
    wait_owners_and_forks(c.worker[0], 1, 1);
    call_int(c.worker[0], "worker1", "release", NULL, 0);
    wait_owners_and_forks(c.worker[0], 0, 0);
}

TEST_WITH(rref_delivers_the_error_of_its_function_when_fetched, open_three, close_all)
{
    struct tenrec_rref *r = NULL;
    struct tenrec_future *f = NULL;
    struct tenrec_value *v = NULL;
    tenrec_error err;

    expect_ok(tenrec_remote(c.worker[0], "worker1", "broken", NULL, 0, NULL, &r, &err), err);
    expect_ok(tenrec_rref_future(r, &f, &err), err);
    expect_ok(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), err);
    assert_int_equal(tenrec_rref_to_here(r, NULL, &v, &err), TENREC_EINVAL);
    assert_non_null(strstr(err.text, "broken on purpose"));
    assert_string_equal(err.worker_name, "worker1");
    tenrec_future_drop(f);
    tenrec_rref_drop(r);
}

TEST_WITH(rref_fails_when_the_function_is_unknown, open_three, close_all)
{
    struct tenrec_rref *r = NULL;
    struct tenrec_value *v = NULL;
    tenrec_error err;

    expect_ok(tenrec_remote(c.worker[0], "worker1", "nonsense", NULL, 0, NULL, &r, &err), err);
    assert_int_equal(tenrec_rref_to_here(r, NULL, &v, &err), TENREC_ENOFUNCTION);
    assert_string_equal(err.worker_name, "worker1");
    tenrec_rref_drop(r);
}

TEST_WITH(local_value_is_refused_when_not_the_owner, open_three, close_all)
{
    struct tenrec_rref *r = remote_int(c.worker[0], "worker1", 1);
    const struct tenrec_value *v;
    tenrec_error err;

    assert_int_equal(tenrec_rref_local_value(r, 1000, &v, &err), TENREC_EINVAL);
    assert_non_null(strstr(err.text, "worker1"));
    tenrec_rref_drop(r);
}

/* ---- shared -------------------------------------------------------------------- */

TEST_WITH(rref_goes_to_its_owner_as_an_argument, open_three, close_all)
{
    struct tenrec_rref *r = remote_int(c.worker[0], "worker1", 21);
    struct tenrec_value arg = tenrec_value_rref(r);

    assert_int_equal(call_int(c.worker[0], "worker1", "twice", &arg, 1), 42);
    tenrec_rref_drop(r);
    wait_owners_and_forks(c.worker[1], 0, 0);
}

TEST_WITH(rref_goes_to_a_third_worker_as_an_argument, open_three, close_all)
{
    struct tenrec_rref *r = remote_int(c.worker[0], "worker1", 21);
    struct tenrec_value arg = tenrec_value_rref(r);

    call_int(c.worker[0], "worker2", "keep", &arg, 1);
    wait_owners_and_forks(c.worker[1], 1, 2);
    tenrec_rref_drop(r);
    wait_owners_and_forks(c.worker[1], 1, 1);
    assert_int_equal(call_int(c.worker[0], "worker2", "kept", NULL, 0), 21);
    call_int(c.worker[0], "worker2", "release", NULL, 0);
    wait_owners_and_forks(c.worker[1], 0, 0);
}

TEST_WITH(rref_travels_inside_lists_and_maps, open_three, close_all)
{
    struct tenrec_rref *r = remote_int(c.worker[0], "worker1", 3), *s = new_int(c.worker[0], 4);
    struct tenrec_value item[2] = { tenrec_value_rref(r), tenrec_value_rref(s) };
    struct tenrec_entry entry[1] = { { "both", tenrec_value_array(item, 2) } };
    struct tenrec_value arg = tenrec_value_map(entry, 1), *v = NULL;
    const struct tenrec_value *both;
    tenrec_error err;

    expect_ok(tenrec_rpc_sync(c.worker[0], "worker2", "value", &arg, 1, NULL, &v, &err), err);
    both = tenrec_value_find(v, "both");
    assert_non_null(both);
    assert_int_equal(int_of(both->u.array[0].u.rref), 3);
    assert_int_equal(int_of(both->u.array[1].u.rref), 4);
    assert_true(both->u.array[1].u.rref == s);
    tenrec_value_drop(v);
    tenrec_rref_drop(r);
    tenrec_rref_drop(s);
    wait_owners_and_forks(c.worker[1], 0, 0);
    wait_owners_and_forks(c.worker[0], 0, 0);
}

TEST_WITH(rref_comes_back_as_a_result, open_three, close_all)
{
    struct tenrec_value arg = tenrec_value_int(11), *v = NULL;
    tenrec_error err;

    expect_ok(tenrec_rpc_sync(c.worker[0], "worker1", "make", &arg, 1, NULL, &v, &err), err);
    assert_int_equal(v->type, TENREC_VALUE_RREF);
    assert_int_equal(int_of(v->u.rref), 11);
    wait_owners_and_forks(c.worker[1], 1, 1);
    tenrec_value_drop(v);
    wait_owners_and_forks(c.worker[1], 0, 0);
}

TEST_WITH(rref_is_released_when_no_caller_takes_the_result, open_three, close_all)
{
    struct tenrec_value arg = tenrec_value_int(11);
    tenrec_error err;

    expect_ok(tenrec_rpc_sync(c.worker[0], "worker1", "make", &arg, 1, NULL, NULL, &err), err);
    wait_owners_and_forks(c.worker[1], 0, 0);
}

TEST_WITH(rref_is_released_when_the_call_is_refused, open_three, close_all)
{
    struct tenrec_rref *r = new_int(c.worker[0], 5), *s = remote_int(c.worker[0], "worker2", 6);
    struct tenrec_value arg[] = { tenrec_value_rref(r), tenrec_value_rref(s) };
    tenrec_error err;

    assert_int_equal(tenrec_rpc_sync(c.worker[0], "worker1", "nonsense", arg, 2, NULL, NULL, &err),
                     TENREC_ENOFUNCTION);
    wait_owners_and_forks(c.worker[0], 0, 0);
    wait_flushed(c.worker[0]);
    tenrec_rref_drop(r);
    tenrec_rref_drop(s);
    wait_owners_and_forks(c.worker[2], 0, 0);
}

TEST_WITH(rref_goes_on_from_worker_to_worker, open_three, close_all)
{
    struct tenrec_rref *r = remote_int(c.worker[0], "worker1", 9);
    struct tenrec_value arg[] = { tenrec_value_text("worker2"), tenrec_value_rref(r) };

    assert_int_equal(call_int(c.worker[0], "worker0", "give", arg, 2), 9);
    assert_int_equal(call_int(c.worker[0], "worker1", "give", arg, 2), 9);
    assert_int_equal(call_int(c.worker[0], "worker2", "give", arg, 2), 9);
    tenrec_rref_drop(r);
    wait_owners_and_forks(c.worker[1], 0, 0);
}

TEST_WITH(rref_of_a_rref_leads_to_the_value, open_three, close_all)
{
    struct tenrec_value arg[] = { tenrec_value_text("worker2"), tenrec_value_text("worker0"),
                                  tenrec_value_int(8) };
    struct tenrec_rref *r = NULL;
    struct tenrec_value *v = NULL, *inner = NULL;
    tenrec_error err;

    expect_ok(tenrec_remote(c.worker[0], "worker1", "chain", arg, 3, NULL, &r, &err), err);
    expect_ok(tenrec_rref_to_here(r, NULL, &v, &err), err);
    assert_int_equal(v->type, TENREC_VALUE_RREF);
    expect_ok(tenrec_rref_to_here(v->u.rref, NULL, &inner, &err), err);
    assert_int_equal(inner->type, TENREC_VALUE_RREF);
    assert_true(tenrec_rref_is_owner(inner->u.rref));
    assert_int_equal(int_of(inner->u.rref), 8);
    tenrec_value_drop(inner);
    tenrec_value_drop(v);
    tenrec_rref_drop(r);
    for (size_t i = 0; i < 3; i++)
        wait_owners_and_forks(c.worker[i], 0, 0);
}

TEST_WITH(rref_is_refused_when_gathered, open_three, close_all)
{
    struct tenrec_rref *r = new_int(c.worker[0], 1);
    const struct tenrec_value item = tenrec_value_rref(r), list = tenrec_value_array(&item, 1);
    tenrec_error err;

    assert_int_equal(tenrec_worker_all_gather(c.worker[0], &list, NULL, 0, 1000, NULL, &err),
                     TENREC_EUNSUPPORTED);
    tenrec_rref_drop(r);
}

/* ---- objects, and calls on them -------------------------------------------------- */

static struct tenrec_rref *remote_table(struct tenrec_worker *w, const char *to, int64_t n)
{
    const struct tenrec_value v = tenrec_value_int(n);
    struct tenrec_rref *r = NULL;
    tenrec_error err;

    expect_ok(tenrec_remote(w, to, "table", &v, 1, NULL, &r, &err), err);
    return r;
}

static int64_t lookup(struct tenrec_rref *r, int64_t i)
{
    const struct tenrec_value arg = tenrec_value_int(i);
    struct tenrec_value *v = NULL;
    tenrec_error err;
    int64_t got;

    expect_ok(tenrec_rref_rpc_sync(r, "lookup", &arg, 1, NULL, &v, &err), err);
    got = v->u.integer;
    tenrec_value_drop(v);
    return got;
}

TEST_WITH(object_stays_with_its_owner_when_called_on, open_three, close_all)
{
    struct tenrec_rref *r = remote_table(c.worker[0], "worker1", 4), *sum = NULL;
    struct tenrec_value arg[] = { tenrec_value_int(2), tenrec_value_int(77) };
    struct tenrec_future *f = NULL;
    tenrec_error err;

    assert_int_equal(lookup(r, 3), 3);
    expect_ok(tenrec_rref_rpc_async(r, "put", arg, 2, NULL, &f, &err), err);
    expect_ok(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), err);
    tenrec_future_drop(f);
    assert_int_equal(lookup(r, 2), 77);
    expect_ok(tenrec_rref_remote(r, "lookup", arg, 1, NULL, &sum, &err), err);
    assert_int_equal(int_of(sum), 77);
    assert_int_equal(tables_alive(), 1);
    tenrec_rref_drop(sum);
    tenrec_rref_drop(r);
    wait_owners_and_forks(c.worker[1], 0, 0);
    assert_int_equal(tables_alive(), 0);
}

TEST_WITH(object_of_the_caller_is_called_on, open_three, close_all)
{
    struct tenrec_rref *r = remote_table(c.worker[0], "worker0", 4);

    assert_int_equal(lookup(r, 1), 1);
    tenrec_rref_drop(r);
}

TEST_WITH(object_travels_when_its_type_says_how, open_three, close_all)
{
    struct tenrec_rref *r = remote_table(c.worker[0], "worker1", 4);
    struct tenrec_value *v = NULL, arg[2];
    void *data = NULL;
    tenrec_error err;

    expect_ok(tenrec_rref_to_here(r, NULL, &v, &err), err);
    expect_ok(tenrec_object_get(v, &table_type, &data, &err), err);
    assert_int_equal(tables_alive(), 2);
    arg[0] = *v;
    arg[1] = tenrec_value_int(3);
    assert_int_equal(call_int(c.worker[0], "worker2", "lookup", arg, 2), 3);
    tenrec_value_drop(v);
    tenrec_rref_drop(r);
    wait_owners_and_forks(c.worker[1], 0, 0);
}

TEST_WITH(object_does_not_travel_when_its_type_cannot, open_three, close_all)
{
    struct tenrec_rref *r = NULL;
    struct tenrec_value *v = NULL;
    void *data;
    tenrec_error err;

    expect_ok(tenrec_remote(c.worker[0], "worker1", "sealed", NULL, 0, NULL, &r, &err), err);
    assert_int_equal(tenrec_rref_to_here(r, NULL, &v, &err), TENREC_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "sealed"));
    v = NULL;
    tenrec_rref_drop(r);
    r = remote_int(c.worker[0], "worker0", 1);
    expect_ok(tenrec_rref_to_here(r, NULL, &v, &err), err);
    assert_int_equal(tenrec_object_get(v, &table_type, &data, &err), TENREC_EINVAL);
    tenrec_value_drop(v);
    tenrec_rref_drop(r);
}

TEST_WITH(call_on_a_value_fails_as_its_creation_did, open_three, close_all)
{
    struct tenrec_rref *r = NULL;
    tenrec_error err;

    expect_ok(tenrec_remote(c.worker[0], "worker1", "broken", NULL, 0, NULL, &r, &err), err);
    assert_int_equal(tenrec_rref_rpc_sync(r, "lookup", NULL, 0, NULL, NULL, &err), TENREC_EINVAL);
    assert_non_null(strstr(err.text, "broken on purpose"));
    tenrec_rref_drop(r);
}

/* ---- tensors ------------------------------------------------------------------------ */

TEST_WITH(to_here_receives_into_the_given_buffer, open_three, close_all)
{
    struct tenrec_call_options o = { .size = sizeof o };
    const struct tenrec_value n = tenrec_value_int(4);
    const int64_t shape = 4;
    tenrec_error err;

    for (int owner = 0; owner < 2; owner++) {
        struct tenrec_rref *r = NULL;
        struct tenrec_value *v = NULL;
        expect_ok(tenrec_tensor_new(TENREC_FLOAT32, 1, &shape, &o.into, &err), err);
        expect_ok(tenrec_remote(c.worker[0], owner ? "worker1" : "worker0", "range", &n, 1, NULL,
                                &r, &err),
                  err);
        expect_ok(tenrec_rref_to_here(r, &o, &v, &err), err);
        assert_true(((const float *)tenrec_tensor_data(o.into))[3] == 3.0F);
        assert_ptr_equal(tenrec_tensor_data(v->u.tensor), tenrec_tensor_data(o.into));
        tenrec_value_drop(v);
        tenrec_tensor_drop(o.into);
        tenrec_rref_drop(r);
    }
}

/* ---- times ---------------------------------------------------------------------------- */

TEST_WITH(to_here_times_out_when_the_value_is_not_made, open_three, close_all)
{
    struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = 20 };
    struct tenrec_rref *r = NULL, *mine = NULL;
    struct tenrec_value *v = NULL;
    const struct tenrec_value *local;
    tenrec_error err;

    functions_close_gate();
    expect_ok(tenrec_remote(c.worker[0], "worker1", "wait_long", NULL, 0, NULL, &r, &err), err);
    expect_ok(tenrec_remote(c.worker[0], "worker0", "wait_long", NULL, 0, NULL, &mine, &err), err);
    assert_int_equal(tenrec_rref_to_here(r, &o, &v, &err), TENREC_ETIMEDOUT);
    assert_int_equal(tenrec_rref_to_here(mine, &o, &v, &err), TENREC_ETIMEDOUT);
    assert_int_equal(tenrec_rref_local_value(mine, 20, &local, &err), TENREC_ETIMEDOUT);
    functions_open_gate();
    expect_ok(tenrec_rref_to_here(r, NULL, &v, &err), err);
    tenrec_value_drop(v);
    expect_ok(tenrec_rref_to_here(mine, NULL, &v, &err), err);
    tenrec_value_drop(v);
    tenrec_rref_drop(r);
    tenrec_rref_drop(mine);
}

TEST_WITH(rref_fails_when_its_creation_times_out, open_three, close_all)
{
    struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = 20 };
    struct tenrec_rref *r[2] = { NULL, NULL };
    struct tenrec_value *v = NULL, arg;
    struct tenrec_future *f = NULL;
    tenrec_error err;

    functions_close_gate();
    for (int i = 0; i < 2; i++) {
        expect_ok(tenrec_remote(c.worker[0], i ? "worker1" : "worker0", "wait_long", NULL, 0, &o,
                                &r[i], &err),
                  err);
        expect_ok(tenrec_rref_future(r[i], &f, &err), err);
        assert_int_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), TENREC_ETIMEDOUT);
        tenrec_future_drop(f);
        assert_int_equal(tenrec_rref_to_here(r[i], NULL, &v, &err), TENREC_ETIMEDOUT);
        assert_non_null(strstr(err.text, "RRef creation"));
        arg = tenrec_value_rref(r[i]);
        assert_int_equal(
            tenrec_rpc_sync(c.worker[0], "worker2", "to_here", &arg, 1, NULL, NULL, &err),
            TENREC_ETIMEDOUT);
        assert_non_null(strstr(err.text, "RRef creation"));
        tenrec_rref_drop(r[i]);
    }
    functions_open_gate();
    wait_owners_and_forks(c.worker[1], 0, 0);
    wait_owners_and_forks(c.worker[0], 0, 0);
}

TEST_WITH(rref_may_not_be_waited_for_when_inline, open_three, close_all)
{
    struct tenrec_rref *r = remote_int(c.worker[0], "worker1", 1);
    struct tenrec_value arg = tenrec_value_rref(r);
    tenrec_error err;

    assert_int_equal(
        tenrec_rpc_sync(c.worker[0], "worker2", "to_here_inline", &arg, 1, NULL, NULL, &err),
        TENREC_EWOULDBLOCK);
    assert_non_null(strstr(err.text, "may not wait"));
    tenrec_rref_drop(r);
}

/* ---- the end ---------------------------------------------------------------------------- */

TEST_WITH(release_all_makes_references_unusable, open_three, close_all)
{
    struct tenrec_rref *r = remote_int(c.worker[0], "worker1", 1), *s = new_int(c.worker[0], 2);
    struct tenrec_value *v = NULL, arg;
    tenrec_error err;

    expect_ok(tenrec_rref_release_all(c.worker[0], CLUSTER_LONG_MS, &err), err);
    wait_owners_and_forks(c.worker[1], 0, 0);
    assert_int_equal(tenrec_rref_to_here(r, NULL, &v, &err), TENREC_ENOTFOUND);
    arg = tenrec_value_rref(r);
    assert_int_equal(tenrec_rpc_sync(c.worker[0], "worker2", "value", &arg, 1, NULL, NULL, &err),
                     TENREC_ENOTFOUND);
    assert_int_equal(int_of(s), 2);
    tenrec_rref_drop(r);
    tenrec_rref_drop(s);
}

TEST_WITH(release_all_names_remaining_holders_at_its_timeout, open_three, close_all)
{
    struct tenrec_rref *r = new_int(c.worker[0], 2);
    struct tenrec_value arg = tenrec_value_rref(r);
    tenrec_error err;

    call_int(c.worker[0], "worker1", "keep", &arg, 1);
    assert_int_equal(tenrec_rref_release_all(c.worker[0], 30, &err), TENREC_ETIMEDOUT);
    assert_non_null(strstr(err.text, "'worker1' still refers to RRef("));
    tenrec_rref_drop(r);
    call_int(c.worker[0], "worker1", "release", NULL, 0);
}

TEST_MAIN(cluster_use(argv[1]), NULL, NULL)

/* ---- flags ------------------------------------------------------------------- */

static void refuse_flags(const char *to, const struct tenrec_value *v, struct tenrec_rref *r)
{
    struct tenrec_value *got = NULL;
    struct tenrec_rref *made = NULL;
    struct tenrec_future *f = NULL;
    tenrec_error err;

    assert_int_equal(tenrec_rpc_sync(c.worker[0], to, "identity", v, 1, NULL, &got, &err),
                     TENREC_EINVAL);
    assert_non_null(strstr(err.text, "has the unknown flags 0x"));
    assert_int_equal(tenrec_rpc_async(c.worker[0], to, "identity", v, 1, NULL, &f, &err),
                     TENREC_EINVAL);
    assert_int_equal(tenrec_remote(c.worker[0], to, "identity", v, 1, NULL, &made, &err),
                     TENREC_EINVAL);
    assert_int_equal(tenrec_rref_rpc_sync(r, "identity", v, 1, NULL, &got, &err), TENREC_EINVAL);
    assert_int_equal(tenrec_rref_new(c.worker[0], v, &made, &err), TENREC_EINVAL);
    assert_int_equal(tenrec_value_copy(v, &got, &err), TENREC_EINVAL);
    assert_non_null(strstr(err.text, "has the unknown flags 0x"));
}

TEST_WITH(values_with_flags_are_refused_by_every_call, open_three, close_all)
{
    struct tenrec_rref *r = remote_int(c.worker[0], "worker1", 42);
    struct tenrec_value v[] = { tenrec_value_rref(r), tenrec_value_int(1), tenrec_value_text("x"),
                                tenrec_value_nil() };
    const struct tenrec_value list = tenrec_value_array(v, 1);

    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++)
        for (uint32_t bit = 1; bit != 0; bit = bit == 1   ? 2
                                               : bit == 2 ? 4
                                               : bit == 4 ? 1u << 31
                                                          : 0) {
            v[i].flags = bit;
            refuse_flags("worker1", &v[i], r);
            refuse_flags("worker2", &v[i], r);
            if (i == 0)
                refuse_flags("worker1", &list, r);
            v[i].flags = 0;
        }
    tenrec_rref_drop(r);
}
