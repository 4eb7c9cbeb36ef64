/* SPDX-License-Identifier: Apache-2.0 */
/* Links between workers of one process; the backend and the security mode in argv. */
#include "../support/functions.h"
#include "../testing.h"
#include "link_support.h"

#include "../region/region_support.h"

#include <stdio.h>
#include <tenrec/group.h>

static struct tenrec_worker *a, *b;

static void open_two(void)
{
    a = alone_new("north");
    b = alone_new("south");
}

static void close_two(void)
{
    alone_drop(a);
    alone_drop(b);
}

static tenrec_status call_add(struct tenrec_worker *w, const char *to, tenrec_error *err)
{
    return functions_call_add(w, to, 1, 2, err);
}

/* ---- calls --------------------------------------------------------------------------- */

TEST_WITH(link_calls_the_worker_of_its_record, open_two, close_two)
{
    const struct record r = record_of(b);
    struct tenrec_link *l = link_to(a, &r);

    assert_string_equal(tenrec_link_name(l), "south");
    functions_must_call_add(a, "south");
    tenrec_link_drop(l);
}

static bool has_common_secret(void);

/* With a secret of each, the other needs a record, too. */
TEST_WHEN(link_serves_both_ways_once_one_worker_has_connected, has_common_secret, open_two,
          close_two)
{
    const struct record r = record_of(b);
    struct tenrec_link *l = link_to(a, &r);

    functions_must_call_add(a, "south");
    functions_must_call_add(b, "north");
    tenrec_link_drop(l);
}

TEST_WITH(link_serves_both_ways_when_both_have_connected, open_two, close_two)
{
    struct tenrec_link *l[2];

    link_both(a, b, l);
    for (int i = 0; i < 10; i++) {
        functions_must_call_add(b, "north");
        functions_must_call_add(a, "south");
    }
    tenrec_link_drop(l[0]);
    tenrec_link_drop(l[1]);
}

TEST_WITH(link_shows_the_caller_by_its_name, open_two, close_two)
{
    struct tenrec_link *l[2];
    struct tenrec_value *v;
    tenrec_error err;

    link_both(a, b, l);
    assert_status(tenrec_rpc_sync(a, "south", "who", NULL, 0, NULL, &v, &err), &err);
    assert_string_equal(v->u.array[0].u.text, "north");
    tenrec_value_drop(v);
    tenrec_link_drop(l[0]);
    tenrec_link_drop(l[1]);
}

TEST_WITH(link_is_one_of_several, open_two, close_two)
{
    struct tenrec_worker *c = alone_new("east");
    const struct record of_b = record_of(b), of_c = record_of(c);
    struct tenrec_link *to_b = link_to(a, &of_b), *to_c = link_to(a, &of_c);

    functions_must_call_add(a, "south");
    functions_must_call_add(a, "east");
    tenrec_link_drop(to_b);
    functions_must_call_add(a, "east");
    tenrec_link_drop(to_c);
    alone_drop(c);
}

/* ---- regions --------------------------------------------------------------------------- */

TEST_WITH(link_carries_transfers_to_and_from_regions, open_two, close_two)
{
    struct tenrec_tensor *memory = bytes_new(1 << 20, 1), *local = bytes_new(1 << 20, 9);
    struct tenrec_link *l[2];
    struct tenrec_region *r;
    struct tenrec_region_ref ref;
    struct tenrec_bulk e;
    tenrec_error err;

    link_both(a, b, l);
    r = region_of(b, memory, BOTH);
    ref = ref_of(r);
    e = reading(&ref, 0, 1 << 20, local, 0);
    assert_status(transfer(a, &e, 1, &err), &err);
    assert_true(bytes_are(local, 0, 1 << 20, 1));
    e = writing(&ref, 4096, 4096, local, 0);
    assert_status(transfer(a, &e, 1, &err), &err);
    assert_true(bytes_are(memory, 4096, 4096, 1));
    assert_status(tenrec_region_revoke(r, CLUSTER_LONG_MS, &err), &err);
    assert_int_equal(transfer(a, &e, 1, &err), TENREC_ESTALE);
    tenrec_region_drop(r);
    tenrec_tensor_drop(memory);
    tenrec_tensor_drop(local);
    tenrec_link_drop(l[0]);
    tenrec_link_drop(l[1]);
}

/* ---- the group stays as it is -------------------------------------------------------------- */

TEST_WITH(link_adds_no_member_to_the_group, open_two, close_two)
{
    struct tenrec_group_view *view;
    struct tenrec_worker_info info[4];
    struct tenrec_link *l[2];
    tenrec_error err;
    size_t n;

    link_both(a, b, l);
    functions_must_call_add(a, "south");
    assert_status(tenrec_worker_get_infos(a, info, 4, &n, &err), &err);
    assert_int_equal(n, 1);
    assert_status(tenrec_group_view_get(a, &view, &err), &err);
    assert_int_equal(view->n, 1);
    tenrec_group_view_drop(view);
    assert_status(tenrec_worker_barrier(a, NULL, 0, CLUSTER_LONG_MS, &err), &err);
    assert_int_equal(info_of(a, "link.num_links"), 1);
    tenrec_link_drop(l[0]);
    tenrec_link_drop(l[1]);
    assert_int_equal(info_of(a, "link.num_links"), 0);
}

/* ---- references ---------------------------------------------------------------------------- */

static int64_t references(struct tenrec_worker *w)
{
    return info_of(w, "rref.num_owner_rrefs") + info_of(w, "rref.num_confirmed_users");
}

static int64_t here(struct tenrec_rref *r)
{
    struct tenrec_value *v;
    tenrec_error err;
    int64_t n;

    assert_status(tenrec_rref_to_here(r, NULL, &v, &err), &err);
    n = v->type == TENREC_VALUE_ARRAY ? v->u.array[0].u.integer : v->u.integer;
    tenrec_value_drop(v);
    return n;
}

TEST_WITH(link_carries_references_to_values_of_both_workers, open_two, close_two)
{
    const struct tenrec_value one = tenrec_value_int(41);
    struct tenrec_rref *theirs, *own;
    struct tenrec_value args[2], *v;
    struct tenrec_link *l[2];
    tenrec_error err;

    link_both(a, b, l);
    assert_status(tenrec_remote(a, "south", "identity", &one, 1, NULL, &theirs, &err), &err);
    assert_int_equal(here(theirs), 41);
    assert_status(tenrec_rref_new(a, &one, &own, &err), &err);
    args[0] = tenrec_value_rref(theirs);
    args[1] = tenrec_value_rref(own);
    assert_status(tenrec_rpc_sync(a, "south", "identity", args, 2, NULL, &v, &err), &err);
    assert_int_equal(v->n, 2);
    assert_int_equal(here(v->u.array[0].u.rref), 41);
    assert_int_equal(here(v->u.array[1].u.rref), 41);
    assert_true(tenrec_rref_is_owner(v->u.array[1].u.rref));
    assert_string_equal(tenrec_rref_owner_name(v->u.array[0].u.rref), "south");
    tenrec_value_drop(v);
    tenrec_rref_drop(theirs);
    tenrec_rref_drop(own);
    assert_becomes(references(a) == 0 && references(b) == 0);
    tenrec_link_drop(l[0]);
    tenrec_link_drop(l[1]);
}

TEST_WITH(link_refuses_references_to_values_of_a_third_worker, open_two, close_two)
{
    struct tenrec_worker *c = alone_new("east");
    const struct record of_b = record_of(b), of_c = record_of(c);
    struct tenrec_link *to_b = link_to(a, &of_b), *to_c = link_to(a, &of_c);
    const struct tenrec_value one = tenrec_value_int(1);
    struct tenrec_value v;
    struct tenrec_rref *r;
    tenrec_error err;

    assert_status(tenrec_remote(a, "east", "identity", &one, 1, NULL, &r, &err), &err);
    v = tenrec_value_rref(r);
    assert_int_equal(tenrec_rpc_sync(a, "south", "identity", &v, 1, NULL, NULL, &err),
                     TENREC_EUNSUPPORTED);
    assert_text_has(err.text, "'south' is linked");
    tenrec_rref_drop(r);
    assert_becomes(references(c) == 0);
    tenrec_link_drop(to_b);
    tenrec_link_drop(to_c);
    alone_drop(c);
}

/* ---- its end ---------------------------------------------------------------------------- */

TEST_WITH(link_of_the_same_record_is_the_same_until_its_last_drop, open_two, close_two)
{
    const struct record r = record_of(b), again = record_of(b);
    struct tenrec_link *l = link_to(a, &r), *other = link_to(a, &again);
    tenrec_error err;

    assert_ptr_equal(l, other);
    tenrec_link_drop(l);
    functions_must_call_add(a, "south");
    tenrec_link_drop(other);
    assert_int_equal(call_add(a, "south", &err), TENREC_EPEER_UNKNOWN);
}

TEST_WITH(link_fails_its_calls_when_it_is_dropped, open_two, close_two)
{
    const struct record r = record_of(b);
    struct tenrec_link *l = link_to(a, &r);
    struct tenrec_future *f = functions_hold(a, "south");
    tenrec_error err;

    tenrec_link_drop(l);
    assert_int_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), TENREC_EPEER_LOST);
    assert_text_has(err.text, "south");
    tenrec_future_drop(f);
    functions_open_gate();
}

TEST_WITH(link_can_be_made_again_after_a_drop, open_two, close_two)
{
    const struct record r = record_of(b);

    for (int i = 0; i < 20; i++) {
        struct tenrec_link *l = link_to(a, &r);

        functions_must_call_add(a, "south");
        tenrec_link_drop(l);
    }
    assert_int_equal(info_of(b, "link.num_accepted"), 1);
}

TEST_WITH(link_may_be_dropped_after_its_worker, NULL, NULL)
{
    struct tenrec_link *l[2];

    open_two();
    link_both(a, b, l);
    functions_must_call_add(a, "south");
    close_two();
    assert_string_equal(tenrec_link_name(l[0]), "south");
    tenrec_link_drop(l[0]);
    tenrec_link_drop(l[1]);
    tenrec_link_drop(NULL);
}

TEST_WITH(link_names_a_worker_that_has_started_again, open_two, close_two)
{
    struct record r = record_of(b);
    struct tenrec_link *l = link_to(a, &r), *other;
    tenrec_error err;

    functions_must_call_add(a, "south");
    alone_drop(b);
    b = alone_new("south");
    r = record_of(b);
    assert_int_equal(tenrec_link_connect(a, r.bytes, r.len, &other, &err), TENREC_EEXIST);
    assert_text_has(err.text, "another worker that is linked is called 'south'");
    assert_int_not_equal(call_add(a, "south", &err), TENREC_OK);
    tenrec_link_drop(l);
    l = link_to(a, &r);
    functions_must_call_add(a, "south");
    tenrec_link_drop(l);
}

/* ---- refusals ----------------------------------------------------------------------------- */

TEST_WITH(link_refuses_the_record_of_its_own_worker, open_two, close_two)
{
    const struct record r = record_of(a);
    struct tenrec_link *l;
    tenrec_error err;

    assert_int_equal(tenrec_link_connect(a, r.bytes, r.len, &l, &err), TENREC_EINVAL);
    assert_text_has(err.text, "of this worker itself");
    assert_null(l);
}

TEST_WITH(link_refuses_a_worker_of_its_own_name, open_two, close_two)
{
    struct tenrec_worker *c = alone_new("north");
    const struct record r = record_of(c);
    struct tenrec_link *l;
    tenrec_error err;

    assert_int_equal(tenrec_link_connect(a, r.bytes, r.len, &l, &err), TENREC_EEXIST);
    assert_text_has(err.text, "both workers are called 'north'");
    alone_drop(c);
}

TEST_WITH(link_refuses_a_record_that_is_changed_cut_or_too_long, open_two, close_two)
{
    const struct record r = record_of(b);
    struct record bad;
    struct tenrec_link *l;
    tenrec_error err;

    for (size_t i = 0; i < r.len; i++)
        for (int bit = 0; bit < 8; bit++) {
            bad = r;
            bad.bytes[i] ^= (unsigned char)(1u << bit);
            assert_int_equal(tenrec_link_connect(a, bad.bytes, bad.len, &l, &err),
                             TENREC_EPROTOCOL);
        }
    for (size_t n = 0; n < r.len; n++)
        assert_int_equal(tenrec_link_connect(a, r.bytes, n, &l, &err), TENREC_EPROTOCOL);
    memset(&bad, 0, sizeof bad);
    memcpy(bad.bytes, r.bytes, r.len);
    assert_int_equal(tenrec_link_connect(a, bad.bytes, r.len + 1, &l, &err), TENREC_EPROTOCOL);
    assert_int_equal(tenrec_link_connect(a, r.bytes, TENREC_LINK_RECORD_MAX + 1, &l, &err),
                     TENREC_EPROTOCOL);
    assert_text_has(err.text, "1025 bytes are no record of a link: they are too many");
}

TEST_WITH(link_refuses_unknown_flags, open_two, close_two)
{
    unsigned char bytes[TENREC_LINK_RECORD_MAX];
    tenrec_error err;
    size_t n;

    assert_int_equal(tenrec_link_bind(a, 2, bytes, &n, &err), TENREC_EINVAL);
    assert_int_equal(n, 0);
}

TEST(link_is_refused_to_members_of_a_group)
{
    unsigned char bytes[TENREC_LINK_RECORD_MAX];
    struct cluster c;
    tenrec_error err;
    size_t n;

    cluster_open(&c, 2, NULL, NULL);
    assert_int_equal(tenrec_link_bind(c.worker[0], 0, bytes, &n, &err), TENREC_EUNSUPPORTED);
    assert_text_has(err.text, "set worker.world_size to 1");
    cluster_close(&c, TENREC_GRACEFUL);
}

static const char *mode = "none";

static bool has_common_secret(void)
{
    return strcmp(mode, "own") != 0;
}

int main(int argc, char **argv)
{
    if (argc > 2)
        mode = argv[2];
    if (argc > 1)
        alone_use(argv[1], mode);
    return testing_run(NULL, NULL);
}
