/* SPDX-License-Identifier: Apache-2.0 */
/* rref_state_test.c - single parts of the state machine of references; rref_order_test.c
 * tests the whole. */
#include "../testing.h"

#include <stdlib.h>

#include "core/base/clock.h"
#include "rpc/rref/rref.h"
#include "rpc/rref/rref_context.h"

enum { ME, OTHER, THIRD, WORKERS };

static char nobody; /* stands for a worker */
static struct rref_context *ctx;
static struct rref_acts acts;

static void open_context(void)
{
    static const struct tenrec_member member[] = { { .id = ME, .name = "me" },
                                                   { .id = OTHER, .name = "other" },
                                                   { .id = THIRD, .name = "third" } };
    const struct rref_setup s = { .worker = (struct tenrec_worker *)(void *)&nobody,
                                  .member = member,
                                  .n = WORKERS,
                                  .room = WORKERS,
                                  .me = ME,
                                  .session = 3 };

    assert_int_equal(rref_context_new(&s, &ctx, NULL), TENREC_OK);
    acts = (struct rref_acts){ 0 };
}

static void free_dead(void)
{
    struct tenrec_rref *r, *next;

    for (r = acts.dead; r; r = next) {
        next = r->next;
        rref_free(r);
    }
    acts = (struct rref_acts){ 0 };
}

static void close_context(void)
{
    rref_context_close(ctx, &acts);
    free_dead();
    rref_context_drop(ctx);
}

static struct rref_id id_of(int64_t on, int64_t local)
{
    return (struct rref_id){ on, local };
}

static struct tenrec_rref *local(void)
{
    const struct tenrec_value nil = tenrec_value_nil();
    struct tenrec_value *v;
    struct tenrec_rref *r;

    assert_int_equal(tenrec_value_copy(&nil, &v, NULL), TENREC_OK);
    assert_int_equal(rref_local(ctx, v, &r, NULL), TENREC_OK);
    return r;
}

/* ---- sets ------------------------------------------------------------------- */

TEST_WITH(rref_forks_counts_a_fork_once, open_context, close_context)
{
    struct rref_forks f = { .n = 0 };

    assert_true(rref_forks_add(&f, id_of(1, 1), OTHER));
    assert_true(rref_forks_add(&f, id_of(1, 1), OTHER));
    assert_true(rref_forks_add(&f, id_of(1, 2), THIRD));
    assert_int_equal(f.n, 2);
    assert_false(rref_forks_remove(&f, id_of(1, 2), OTHER));
    assert_true(rref_forks_remove(&f, id_of(1, 2), THIRD));
    assert_int_equal(rref_forks_remove_of(&f, OTHER), 1);
    assert_int_equal(f.n, 0);
    rref_forks_finish(&f);
}

TEST_WITH(rref_tombs_forgets_the_oldest_when_full, open_context, close_context)
{
    struct rref_tombs t = { .n = 0 };

    for (int64_t i = 0; i < RREF_TOMBS_MAX + 10; i++)
        rref_tombs_add(&t, id_of(1, i), id_of(2, i), OTHER, RREF_TOMB_DELETED);
    assert_int_equal(t.n, RREF_TOMBS_MAX);
    assert_int_equal(rref_tombs_find(&t, id_of(1, 9), id_of(2, 9), OTHER), RREF_TOMB_NONE);
    assert_int_equal(rref_tombs_find(&t, id_of(1, 10), id_of(2, 10), OTHER), RREF_TOMB_DELETED);
    assert_int_equal(rref_tombs_find(&t, id_of(1, 10), id_of(2, 10), THIRD), RREF_TOMB_NONE);
    rref_tombs_finish(&t);
}

TEST_WITH(rref_gaps_are_the_gaps_of_torch, open_context, close_context)
{
    static const uint64_t ms[] = { 1000, 1000, 1500, 2250, 3375 };

    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(rref_gap_ns(1000, i + 1), ms[i] * 1000000);
}

/* ---- the owner ---------------------------------------------------------------- */

TEST_WITH(rref_delete_of_another_workers_fork_does_nothing, open_context, close_context)
{
    struct tenrec_rref *r = local();
    struct rref_owner *o;
    struct rref_fork f;

    assert_int_equal(rref_fork_for(r, OTHER, &f, NULL), TENREC_OK);
    rref_user_deleted(ctx, f.id, f.fork, THIRD, &acts);
    assert_int_equal(rref_context_count(ctx).num_forks, 1);
    assert_int_equal(rref_find(ctx, f.id, f.fork, OTHER, &o, NULL), TENREC_OK);
    rref_release(&o->ref, &acts);
    rref_user_deleted(ctx, f.id, f.fork, OTHER, &acts);
    assert_int_equal(rref_context_count(ctx).num_forks, 0);
    rref_release(r, &acts);
    free_dead();
}

TEST_WITH(rref_use_of_another_workers_fork_is_refused, open_context, close_context)
{
    struct tenrec_rref *r = local();
    struct rref_owner *o;
    struct rref_fork f;
    tenrec_error err;

    assert_int_equal(rref_fork_for(r, OTHER, &f, NULL), TENREC_OK);
    assert_int_equal(rref_find(ctx, f.id, f.fork, THIRD, &o, &err), TENREC_EPROTOCOL);
    assert_text_has(err.text, "'third' uses a reference of 'other'");
    assert_int_equal(rref_fork_requested(ctx, f.id, f.fork, THIRD, &err), TENREC_EPROTOCOL);
    assert_int_equal(rref_fork_requested(ctx, f.id, f.fork, OTHER, &err), TENREC_OK);
    rref_user_deleted(ctx, f.id, f.fork, OTHER, &acts);
    rref_release(r, &acts);
    free_dead();
}

TEST_WITH(rref_child_accept_counts_only_from_the_worker_that_has_the_child, open_context,
          close_context)
{
    struct rref_user *u;
    struct rref_fork f;

    assert_int_equal(rref_user_new(ctx, OTHER, &u, NULL), TENREC_OK);
    u->ref.handles++; /* of its creation, as in tenrec_remote */
    rref_created(&u->ref, NULL, &acts);
    assert_int_equal(rref_fork_for(&u->ref, THIRD, &f, NULL), TENREC_OK);
    rref_child_arrived(ctx, f.fork, OTHER, &acts);
    assert_int_equal(rref_context_count(ctx).num_pending_children, 1);
    rref_child_arrived(ctx, f.fork, THIRD, &acts);
    assert_int_equal(rref_context_count(ctx).num_pending_children, 0);
    rref_release(&u->ref, &acts);
    rref_job_done(&u->job, NULL, &acts);
    free_dead();
    assert_null(ctx->users);
}

TEST_WITH(rref_context_needs_the_owners_of_references_and_the_holders_of_forks, open_context,
          close_context)
{
    struct tenrec_rref *r = local();
    struct rref_user *u;
    struct rref_fork f;

    assert_false(rref_context_needs(ctx, OTHER));
    assert_int_equal(rref_fork_for(r, OTHER, &f, NULL), TENREC_OK);
    assert_true(rref_context_needs(ctx, OTHER));
    assert_false(rref_context_needs(ctx, THIRD));
    rref_user_deleted(ctx, r->id, f.fork, OTHER, &acts);
    assert_false(rref_context_needs(ctx, OTHER));
    rref_release(r, &acts);

    assert_int_equal(rref_user_new(ctx, THIRD, &u, NULL), TENREC_OK);
    assert_true(rref_context_needs(ctx, THIRD));
    u->ref.handles++; /* of its creation, as in tenrec_remote */
    rref_created(&u->ref, NULL, &acts);
    rref_release(&u->ref, &acts);
    rref_job_done(&u->job, NULL, &acts);
    free_dead();
    assert_false(rref_context_needs(ctx, THIRD));
}

TEST_WITH(rref_that_was_released_is_not_found_by_a_late_asker, open_context, close_context)
{
    struct tenrec_rref *r = local();
    struct rref_owner *o;
    struct rref_fork f;
    tenrec_error err;

    assert_int_equal(rref_fork_for(r, OTHER, &f, NULL), TENREC_OK);
    rref_release(r, &acts);
    rref_user_deleted(ctx, f.id, f.fork, OTHER, &acts);
    free_dead();
    assert_null(ctx->owners);
    assert_int_equal(rref_find(ctx, f.id, id_of(THIRD, 1), THIRD, &o, &err), TENREC_ENOTFOUND);
    assert_int_equal(rref_fork_requested(ctx, f.id, id_of(THIRD, 1), THIRD, &err),
                     TENREC_ENOTFOUND);
}

TEST_WITH(rref_creation_that_comes_twice_is_made_once, open_context, close_context)
{
    struct rref_owner *o, *again;

    assert_int_equal(rref_begin_making(ctx, id_of(1, 1), id_of(1, 2), OTHER, &o, NULL), TENREC_OK);
    assert_int_equal(rref_begin_making(ctx, id_of(1, 1), id_of(1, 2), OTHER, &again, NULL),
                     TENREC_EEXIST);
    rref_made(o, id_of(1, 2), OTHER, NULL, NULL, &acts);
    assert_int_equal(rref_begin_making(ctx, id_of(1, 1), id_of(1, 2), OTHER, &again, NULL),
                     TENREC_EEXIST);
    rref_user_deleted(ctx, id_of(1, 1), id_of(1, 2), OTHER, &acts);
    free_dead();
    assert_int_equal(rref_begin_making(ctx, id_of(1, 1), id_of(1, 2), OTHER, &again, NULL),
                     TENREC_ECANCELED);
}

TEST_WITH(rref_made_for_a_lost_worker_is_not_kept, open_context, close_context)
{
    struct rref_owner *o;
    tenrec_error why;

    tenrec_fail(&why, TENREC_EPEER_LOST, "gone");
    assert_int_equal(rref_begin_making(ctx, id_of(1, 1), id_of(1, 2), OTHER, &o, NULL), TENREC_OK);
    rref_peer_lost(ctx, OTHER, &why, &acts);
    rref_made(o, id_of(1, 2), OTHER, NULL, NULL, &acts);
    free_dead();
    assert_null(ctx->owners);
    assert_int_equal(rref_context_count(ctx).num_forks, 0);
}

/* One thread handles a member's messages while another sees it leave. */
TEST_WITH(rref_of_a_member_that_has_left_is_not_kept, open_context, close_context)
{
    const tenrec_error why = { .code = TENREC_EPEER_LOST, .worker = OTHER };
    struct tenrec_rref *r = local();
    struct rref_fork fork;
    struct rref_owner *o;
    tenrec_error err;

    rref_peer_gone(ctx, OTHER);
    rref_peer_lost(ctx, OTHER, &why, &acts);
    assert_int_equal(rref_begin_making(ctx, id_of(1, 1), id_of(1, 2), OTHER, &o, NULL), TENREC_OK);
    rref_made(o, id_of(1, 2), OTHER, NULL, NULL, &acts);
    assert_int_equal(rref_fork_requested(ctx, id_of(1, 3), id_of(1, 4), OTHER, &err), TENREC_OK);
    assert_int_equal(rref_fork_requested(ctx, r->id, id_of(1, 5), OTHER, &err), TENREC_OK);
    assert_int_equal(rref_fork_for(r, OTHER, &fork, &err), TENREC_EPEER_UNKNOWN);
    assert_text_has(err.text, "'other' has left the group");
    assert_int_equal(rref_context_count(ctx).num_forks, 0);
    assert_int_equal(rref_context_count(ctx).num_owner_rrefs, 0);
    /* Its next life may have some. */
    assert_int_equal(rref_context_set_name(ctx, OTHER, "other", &err), TENREC_OK);
    assert_int_equal(rref_fork_requested(ctx, r->id, id_of(1, 6), OTHER, &err), TENREC_OK);
    assert_int_equal(rref_context_count(ctx).num_forks, 1);
    rref_peer_lost(ctx, OTHER, &why, &acts);
    rref_release(r, &acts);
}

/* A value that was freed, as its last reference was deleted, or lost with its holder's connection.
 */
static void assert_freed_because(bool lost, const char *because)
{
    const tenrec_error why = { .code = TENREC_EPEER_LOST, .worker = OTHER };
    struct tenrec_rref *r = local();
    const struct rref_id id = r->id;
    struct rref_fork fork;
    struct rref_owner *o;
    tenrec_error err;

    assert_status(rref_fork_for(r, OTHER, &fork, &err), &err);
    rref_release(r, &acts);
    if (lost)
        rref_peer_lost(ctx, OTHER, &why, &acts);
    else
        rref_user_deleted(ctx, id, fork.fork, OTHER, &acts);
    assert_int_equal(rref_find(ctx, id, fork.fork, OTHER, &o, &err), TENREC_ENOTFOUND);
    assert_text_has(err.text, because);
    free_dead();
}

TEST_WITH(rref_freed_value_is_refused_with_the_reason, open_context, close_context)
{
    assert_freed_because(false, "the reference to it was deleted");
    assert_freed_because(true, "the connection to the holder of its last reference broke");
}

TEST_WITH(rref_ids_differ_between_sessions, open_context, close_context)
{
    struct tenrec_rref *r = local();

    assert_int_equal(r->id.local >> RREF_SESSION_SHIFT, 3);
    assert_int_equal(r->id.on, ME);
    rref_release(r, &acts);
    free_dead();
}

/* ---- waiting -------------------------------------------------------------------- */

static const tenrec_error *told;
static int times;

static void ready(struct rref_waiter *w, const tenrec_error *why)
{
    (void)w;
    told = why;
    times++;
}

static void tell(void)
{
    for (struct rref_waiter *w = acts.ready; w; w = w->next)
        w->ready(w, w->why);
    free_dead();
}

TEST_WITH(rref_wait_ends_when_its_time_is_up, open_context, close_context)
{
    struct rref_waiter late = { .deadline_ns = 100, .from = -1, .ready = ready };
    struct rref_waiter later = { .deadline_ns = 200, .from = -1, .ready = ready };
    struct rref_owner *o;

    times = 0;
    assert_int_equal(rref_find(ctx, id_of(1, 1), id_of(1, 2), OTHER, &o, NULL), TENREC_OK);
    assert_false(rref_wait(&o->ref, &late));
    assert_false(rref_wait(&o->ref, &later));
    assert_int_equal(rref_context_count(ctx).num_pending_owners, 1);
    assert_int_equal(rref_expire(ctx, 50, &acts), 100);
    tell();
    assert_int_equal(times, 0);
    assert_int_equal(rref_expire(ctx, 100, &acts), 200);
    tell();
    assert_int_equal(times, 1);
    assert_int_equal(told->code, TENREC_ETIMEDOUT);
    assert_true(rref_expire(ctx, 300, &acts) == CLOCK_NEVER);
    tell();
    assert_int_equal(times, 2);
    rref_release(&o->ref, &acts);
    free_dead();
}

TEST_WITH(rref_wait_ends_when_the_waiter_is_lost, open_context, close_context)
{
    struct rref_waiter w = { .deadline_ns = CLOCK_NEVER, .from = THIRD, .ready = ready };
    struct rref_owner *o;
    tenrec_error why;

    times = 0;
    tenrec_fail(&why, TENREC_EPEER_LOST, "gone");
    assert_int_equal(rref_find(ctx, id_of(1, 1), id_of(1, 2), OTHER, &o, NULL), TENREC_OK);
    assert_false(rref_wait(&o->ref, &w));
    rref_peer_lost(ctx, OTHER, &why, &acts);
    tell();
    assert_int_equal(times, 0);
    rref_peer_lost(ctx, THIRD, &why, &acts);
    tell();
    assert_int_equal(times, 1);
    assert_int_equal(told->code, TENREC_EPEER_LOST);
    rref_release(&o->ref, &acts);
    free_dead();
}

TEST_WITH(rref_of_nonsense_is_refused, open_context, close_context)
{
    const struct rref_fork f = { id_of(1, 1), id_of(1, 2), 7, OTHER };
    struct tenrec_rref *r;
    tenrec_error err;

    assert_int_equal(rref_arrive(ctx, &f, &r, &acts, &err), TENREC_EPROTOCOL);
    rref_refuse(ctx, &f, &acts);
    assert_null(acts.jobs);
}

TEST_WITH(rref_fetches_of_a_member_are_bounded_for_that_member_alone, open_context, close_context)
{
    tenrec_error err;

    for (unsigned i = 0; i < RREF_FETCHES; i++)
        assert_int_equal(rref_fetch_begin(ctx, OTHER, &err), TENREC_OK);
    assert_int_equal(rref_fetch_begin(ctx, OTHER, &err), TENREC_EAGAIN);
    assert_int_equal(rref_fetch_begin(ctx, THIRD, &err), TENREC_OK);
    rref_fetch_end(ctx, OTHER);
    assert_int_equal(rref_fetch_begin(ctx, OTHER, &err), TENREC_OK);
}
