/* SPDX-License-Identifier: Apache-2.0 */
/* ownership_test.c - the owner of a reference, its state, and its end: groups
 * G7 and G9 of docs/internals/parity.md. */
#include "own.h"
#include "references.h"

/* ---- G7: errors and owners
 * ------------------------------------------------------------------------ */

static void fetch_fails(struct tenrec_rref *r, tenrec_status code, const char *text)
{
    tenrec_error err;

    assert_int_equal(tenrec_rref_to_here(r, NULL, NULL, &err), (int)code);
    assert_text_has(err.text, text);
    tenrec_rref_drop(r);
}

/* test_remote_with_exception */
static tenrec_status reference_tells_the_error_of_its_function(const struct tenrec_test *t,
                                                               tenrec_error *err)
{
    (void)err;
    fetch_fails(remote(t, next_worker(t, 1), "raise", NULL, 0), TENREC_EREMOTE, "Expected error");
    fetch_fails(remote_int(t, t->name, "no_result", 10), TENREC_EINVAL, "takes 0 arguments, got 1");
    return TENREC_OK;
}

/* test_remote_throw */
static tenrec_status reference_tells_why_a_tensor_was_refused(const struct tenrec_test *t,
                                                              tenrec_error *err)
{
    struct tenrec_tensor *ones = filled(2, 1);
    const struct tenrec_value arg = tenrec_value_tensor(ones);

    (void)err;
    fetch_fails(remote(t, next_worker(t, 1), "no_result", &arg, 1), TENREC_EINVAL,
                "takes 0 arguments, got 1");
    tenrec_tensor_drop(ones);
    return TENREC_OK;
}

/* test_local_rref_no_fork */
static tenrec_status reference_to_a_local_value_has_it(const struct tenrec_test *t,
                                                       tenrec_error *err)
{
    const struct tenrec_value value = tenrec_value_int(35), *v = NULL;
    struct tenrec_rref *r = NULL;

    assert_status(tenrec_rref_new(t->worker, &value, &r, err), err);
    assert_status(tenrec_rref_local_value(r, tenrec_test_stretch_ms(LONG_MS), &v, err), err);
    assert_int_equal(v->u.integer, 35);
    tenrec_rref_drop(r);
    return TENREC_OK;
}

/* test_local_value_not_on_owner */
static tenrec_status local_value_is_refused_to_a_user(const struct tenrec_test *t,
                                                      tenrec_error *err)
{
    struct tenrec_rref *r = remote_ones(t, next_worker(t, 1), 1, 1);
    const struct tenrec_value *v = NULL;

    assert_int_equal(tenrec_rref_local_value(r, tenrec_test_stretch_ms(LONG_MS), &v, err),
                     TENREC_EINVAL);
    assert_text_has(err->text, next_worker(t, 1));
    assert_null(v);
    tenrec_rref_drop(r);
    return TENREC_OK;
}

/* test_owner_equality */
static tenrec_status owners_of_references_are_compared(const struct tenrec_test *t,
                                                       tenrec_error *err)
{
    const struct tenrec_value forty = tenrec_value_int(40);
    struct tenrec_rref *mine[2] = { NULL, NULL }, *other[2];

    for (int i = 0; i < 2; i++) {
        assert_status(tenrec_rref_new(t->worker, &forty, &mine[i], err), err);
        other[i] = remote_ones(t, next_worker(t, 1), 1, 1);
        tenrec_value_drop(fetch(other[i]));
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tenrec_rref_owner(mine[i]), t->rank);
        assert_string_equal(tenrec_rref_owner_name(mine[i]), t->name);
        assert_true(tenrec_rref_is_owner(mine[i]));
        assert_int_equal(tenrec_rref_owner(other[i]), (t->rank + 1) % t->world_size);
        assert_string_equal(tenrec_rref_owner_name(other[i]), next_worker(t, 1));
        assert_false(tenrec_rref_is_owner(other[i]));
    }
    for (int i = 0; i < 2; i++) {
        tenrec_rref_drop(mine[i]);
        tenrec_rref_drop(other[i]);
    }
    return TENREC_OK;
}

/* ---- G9
 * --------------------------------------------------------------------------------------------- */

/* test_rref_leak, test_ignore_rref_leak,
 * test_non_garbage_collected_user_rref_due_to_local_circular_dependency: a
 * reference that is still held at the end is reported, or released silently */
static tenrec_status reference_that_is_left_is_a_leak(const struct tenrec_test *t,
                                                      tenrec_error *err)
{
    struct tenrec_rref *r = remote_ones(t, next_worker(t, 1), 2, 1);
    bool look = t->arg != NULL;
    tenrec_status st;

    tenrec_value_drop(fetch(r));
    tenrec_worker_set_rref_leak_check(t->worker, look);
    st = tenrec_shutdown(t->worker, TENREC_GRACEFUL, tenrec_test_stretch_ms(LONG_MS), err);
    assert_int_equal(st, look ? TENREC_EBUSY : TENREC_OK);
    if (look)
        assert_text_has(err->text, "leak");
    tenrec_rref_drop(r);
    return TENREC_OK;
}

/* test_rref_str */
static tenrec_status reference_has_a_text(const struct tenrec_test *t, tenrec_error *err)
{
    const struct tenrec_value one = tenrec_value_int(1);
    char text[TENREC_RREF_TEXT_MAX], want[64];
    struct tenrec_rref *mine = NULL, *other = remote_ones(t, next_worker(t, 1), 2, 1);

    assert_status(tenrec_rref_new(t->worker, &one, &mine, err), err);
    snprintf(want, sizeof want, "RRef(created_on=%d, local_id=", t->rank);
    assert_text_has(tenrec_rref_text(mine, text, sizeof text), want);
    assert_text_has(text, t->name);
    assert_text_has(tenrec_rref_text(other, text, sizeof text), want);
    assert_text_has(text, next_worker(t, 1));
    tenrec_rref_drop(mine);
    tenrec_rref_drop(other);
    return TENREC_OK;
}

/* test_rref_get_future */
static tenrec_status reference_has_the_future_of_its_creation(const struct tenrec_test *t,
                                                              tenrec_error *err)
{
    struct tenrec_rref *r = remote_ones(t, next_worker(t, 1), 2, 1);
    struct tenrec_future *f = NULL;

    tenrec_value_drop(fetch(r));
    assert_status(tenrec_rref_future(r, &f, err), err);
    wait_ok(f);
    tenrec_future_drop(f);
    tenrec_rref_drop(r);
    return TENREC_OK;
}

static void counts_are(const struct tenrec_test *t, int64_t owners, int64_t forks)
{
    tenrec_error err;

    assert_status(
        tenrec_test_wait_until_pending_futures_and_users_flushed(t->worker, LONG_MS, &err), &err);
    assert_status(tenrec_test_wait_until_owners_and_forks_on_rank(t->worker, owners, forks, t->rank,
                                                                  LONG_MS, &err),
                  &err);
}

/* test_rref_context_debug_info */
static tenrec_status counters_follow_references(const struct tenrec_test *t, tenrec_error *err)
{
    const struct tenrec_value mine = tenrec_value_int(t->rank);
    struct tenrec_process_group *pg = meet(t);
    const char *to = next_worker(t, 1);
    struct tenrec_rref *r = NULL, *made[2];
    struct tenrec_value arg;

    assert_status(tenrec_rref_new(t->worker, &mine, &r, err), err);
    counts_are(t, 0, 0); /* no other worker has it */
    barrier(pg);
    arg = tenrec_value_rref(r);
    tenrec_value_drop(ask(t, to, "keep", &arg, 1));
    counts_are(t, 1, 1);
    barrier(pg);
    tenrec_value_drop(ask(t, to, "forget", NULL, 0));
    counts_are(t, 0, 0);
    barrier(pg);
    for (int i = 0; i < 2; i++) {
        made[i] = remote_ones(t, to, 2, 1);
        tenrec_value_drop(fetch(made[i]));
    }
    barrier(pg);
    counts_are(t, 2, 2); /* those that the worker before has made here */
    barrier(pg);
    for (int i = 0; i < 2; i++)
        tenrec_rref_drop(made[i]);
    tenrec_rref_drop(r);
    tenrec_process_group_drop(pg);
    return TENREC_OK;
}

/* test_use_rref_after_shutdown */
static tenrec_status reference_is_of_no_use_after_the_shutdown(const struct tenrec_test *t,
                                                               tenrec_error *err)
{
    struct tenrec_rref *r = remote_ones(t, next_worker(t, 1), 2, 1), *again = NULL;
    struct tenrec_value arg = tenrec_value_rref(r);

    tenrec_worker_set_rref_leak_check(t->worker, false);
    assert_status(tenrec_shutdown(t->worker, TENREC_GRACEFUL, tenrec_test_stretch_ms(LONG_MS), err),
                  err);
    assert_int_equal(tenrec_rref_to_here(r, NULL, NULL, err), TENREC_ENOTFOUND);
    assert_int_equal(
        tenrec_remote(t->worker, next_worker(t, 1), "identity", &arg, 1, NULL, &again, err),
        TENREC_ESHUTDOWN);
    assert_null(again);
    tenrec_rref_drop(r);
    return TENREC_OK;
}

/* test_user_rrefs_confirmed, test_user_rrefs_confirmed_remote: a function starts
 * when the owner knows of the references that it gets */
static tenrec_status references_of_a_function_are_confirmed(const struct tenrec_test *t,
                                                            tenrec_error *err)
{
    struct tenrec_rref *r = remote_ones(t, next_worker(t, 2), 2, 1), *told;
    const struct tenrec_value arg = tenrec_value_rref(r);
    struct tenrec_value *got = ask(t, next_worker(t, 1), "is_confirmed", &arg, 1);

    (void)err;
    assert_true(got->u.boolean);
    tenrec_value_drop(got);
    told = remote(t, next_worker(t, 1), "is_confirmed", &arg, 1);
    got = fetch(told);
    assert_true(got->u.boolean);
    tenrec_value_drop(got);
    tenrec_rref_drop(told);
    tenrec_rref_drop(r);
    return TENREC_OK;
}

/* test_rref_py_pickle_not_supported: what is no call cannot carry a reference */
static tenrec_status reference_travels_in_calls_only(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_rref *r;
    struct tenrec_value v, *all = NULL;

    if (t->rank == 0)
        return TENREC_OK; /* it would wait for what the others do not send */
    r = remote_ones(t, next_worker(t, 1), 2, 1);
    v = tenrec_value_rref(r);
    assert_int_not_equal(tenrec_worker_all_gather(t->worker, &v, NULL, 0,
                                                  tenrec_test_stretch_ms(LONG_MS), &all, err),
                         TENREC_OK);
    assert_text_has(err->text, "reference");
    tenrec_rref_drop(r);
    return TENREC_OK;
}

int main(int argc, char **argv)
{
    static char yes[] = "";
    const struct parity_case cases[] = {
#define CASE(...) PARITY(__VA_ARGS__, .setup = references_setup)
        CASE(reference_tells_the_error_of_its_function),
        CASE(reference_tells_why_a_tensor_was_refused),
        CASE(reference_to_a_local_value_has_it),
        CASE(local_value_is_refused_to_a_user),
        CASE(owners_of_references_are_compared),
        CASE(reference_that_is_left_is_a_leak, .arg = yes),
        { .name = "parity_reference_that_is_left_is_no_leak_when_nobody_looks",
          reference_that_is_left_is_a_leak,
          { .setup = references_setup } },
        CASE(reference_has_a_text),
        CASE(reference_has_the_future_of_its_creation),
        CASE(counters_follow_references),
        CASE(reference_is_of_no_use_after_the_shutdown),
        CASE(references_of_a_function_are_confirmed),
        CASE(reference_travels_in_calls_only, .flags = TENREC_TEST_UNCLEAN),
    };

    return parity_run(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
