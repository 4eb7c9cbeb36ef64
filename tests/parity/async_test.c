/* SPDX-License-Identifier: Apache-2.0 */
/* async_test.c - functions that answer later: group G12 of docs/internals/parity.md. Each
 * is called in the ways of the table. */
#include "parity.h"

#include "parity_functions.h"

#include <tenrec/rref.h>

enum way { BY_SYNC, BY_ASYNC, BY_REMOTE };

/* The function of a case, with arguments from `to` (x, y, z), and its result. */
struct plan {
    const char *function;
    int64_t x, y, z;
    int64_t sum;
    enum way way;
    tenrec_status code; /* OK, or what it fails with */
    const char *text;   /* then in the error */
};

static void run_remote(const struct tenrec_test *t, const struct plan *p,
                       const struct tenrec_value args[4])
{
    struct tenrec_value *got = NULL;
    struct tenrec_rref *r = NULL;
    tenrec_error err;

    assert_status(tenrec_remote(t->worker, next_worker(t, 1), p->function, args, 4, NULL, &r, &err),
                  &err);
    assert_int_equal(tenrec_rref_to_here(r, NULL, &got, &err), p->code);
    if (p->code == TENREC_OK)
        assert_int_equal(take_int(got), p->sum);
    else
        assert_text_has(err.text, p->text);
    tenrec_rref_drop(r);
}

/* Takes the plan from the options: one body for all of these. */
static tenrec_status run(const struct tenrec_test *t, tenrec_error *err)
{
    const struct plan *p = t->arg;
    const struct tenrec_value args[] = { tenrec_value_text(next_worker(t, 2)),
                                         tenrec_value_int(p->x), tenrec_value_int(p->y),
                                         tenrec_value_int(p->z) };
    struct tenrec_future *f;

    if (p->code == TENREC_OK && p->way == BY_SYNC) {
        assert_int_equal(take_int(ask(t, next_worker(t, 1), p->function, args, 4)), p->sum);
        return TENREC_OK;
    }
    if (p->way == BY_REMOTE) {
        run_remote(t, p, args);
        return TENREC_OK;
    }
    f = ask_async(t, next_worker(t, 1), p->function, args, 4);
    if (p->code == TENREC_OK) {
        assert_int_equal(future_int(f), p->sum);
    } else {
        wait_fails(f, p->code, err);
        assert_text_has(err->text, p->text);
        if (p->way == BY_SYNC)
            assert_int_equal(tenrec_rpc_sync(t->worker, next_worker(t, 1), p->function, args, 4,
                                             NULL, NULL, err),
                             p->code);
    }
    tenrec_future_drop(f);
    return TENREC_OK;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        struct plan plan;
    } list[] = {
        /* test_async_function_raise */
        { "parity_async_raise_fails_the_call",
          { "async_raise", .code = TENREC_EREMOTE, .text = "Expected error" } },
        /* test_async_function_raise_async */
        { "parity_async_raise_fails_the_future",
          { "async_raise", .way = BY_ASYNC, .code = TENREC_EREMOTE, .text = "Expected error" } },
        /* test_async_function_raise_remote */
        { "parity_async_raise_fails_the_reference",
          { "async_raise", .way = BY_REMOTE, .code = TENREC_EREMOTE, .text = "Expected error" } },
        /* test_async_function_wrong_return_type */
        { "parity_async_answer_of_no_type_fails_the_call",
          { "async_wrong_type", .code = TENREC_EINVAL, .text = "type" } },
        /* test_async_function_wrong_return_type_async */
        { "parity_async_answer_of_no_type_fails_the_future",
          { "async_wrong_type", .way = BY_ASYNC, .code = TENREC_EINVAL, .text = "type" } },
        /* test_async_function_wrong_return_type_remote */
        { "parity_async_answer_of_no_type_fails_the_reference",
          { "async_wrong_type", .way = BY_REMOTE, .code = TENREC_EINVAL, .text = "type" } },
        /* test_async_function_simple */
        { "parity_async_add_is_answered", { "async_add", 1, 1, 0, 2 } },
        /* test_async_function_with_future_ctor */
        { "parity_async_add_completes_a_future_of_its_own",
          { "async_add_with_future_ctor", 1, 1, 2, 4 } },
        /* test_async_function_with_future_ctor_remote */
        { "parity_async_add_completes_a_future_of_its_own_for_a_reference",
          { "async_add_with_future_ctor", 1, 1, 2, 4, BY_REMOTE } },
        /* test_async_function_chained */
        { "parity_async_add_chains", { "async_add_chained", 1, 1, 2, 4 } },
        /* test_async_function_chained_remote */
        { "parity_async_add_chains_for_a_reference",
          { "async_add_chained", 1, 1, 2, 4, BY_REMOTE } },
        /* test_async_function_nested */
        { "parity_async_add_nests", { "async_add_nested", 1, 1, 2, 4 } },
        /* test_async_function_nested_remote */
        { "parity_async_add_nests_for_a_reference", { "async_add_nested", 1, 1, 2, 4, BY_REMOTE } },
        /* test_async_function_multi_chained */
        { "parity_async_add_chains_many_times", { "async_add_chained_multi", 1, 20, 3, 61 } },
        /* test_async_function_multi_chained_async */
        { "parity_async_add_chains_many_times_for_a_future",
          { "async_add_chained_multi", 1, 20, 3, 61, BY_ASYNC } },
        /* test_async_function_multi_chained_remote */
        { "parity_async_add_chains_many_times_for_a_reference",
          { "async_add_chained_multi", 1, 20, 3, 61, BY_REMOTE } },
        /* test_async_function_multi_fanout */
        { "parity_async_add_fans_out", { "async_add_multi_fanout", 1, 20, 3, 61 } },
        /* test_async_function_multi_fanout_async */
        { "parity_async_add_fans_out_for_a_future",
          { "async_add_multi_fanout", 1, 20, 3, 61, BY_ASYNC } },
        /* test_async_function_multi_fanout_remote */
        { "parity_async_add_fans_out_for_a_reference",
          { "async_add_multi_fanout", 1, 20, 3, 61, BY_REMOTE } },
    };
    struct parity_case cases[sizeof list / sizeof list[0]];

    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        cases[i] =
            (struct parity_case){ list[i].name, run, { .arg = (void *)(uintptr_t)&list[i].plan } };
    return parity_run(argc, argv, cases, sizeof list / sizeof list[0]);
}
