/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_test.c - workers that join and leave while the others run, on the backend
 * named in argv. */
#include "../support/functions.h"
#include "../support/party.h"
#include "../support/together.h"
#include "../testing.h"
#include "core/base/clock.h"
#include "rpc/call/call.h"
#include "rpc/future/worker.h"
#include "rpc/gather/gather.h"
#include "rpc/gather/gather_set.h"
#include "rpc/monitor/monitor_inside.h"
#include "rpc/value/codec.h"
#include "rpc/worker/worker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { AGAIN_MS = 20 };

static void begin(void)
{
    party_begin();
}

TEST_WITH(dynamic_one_worker_is_a_group, begin, NULL)
{
    struct tenrec_worker *w = party_join(-1, NULL, functions_register);
    struct tenrec_group_view *v;
    tenrec_error err;

    assert_int_equal(party_id(w), 0);
    assert_int_equal(tenrec_group_view_get(w, &v, &err), TENREC_OK);
    assert_int_equal(v->n, 1);
    assert_int_equal(v->version, 1);
    assert_string_equal(v->member[0].name, "worker0");
    tenrec_group_view_drop(v);
    functions_must_call_add(w, "worker0");
    party_leave(w);
}

TEST_WITH(dynamic_joiner_calls_and_is_called_by_all_members, begin, NULL)
{
    struct tenrec_worker *a = party_join(-1, NULL, functions_register);
    struct tenrec_worker *b = party_join(-1, NULL, functions_register);
    struct tenrec_worker *c = party_join(7, NULL, functions_register);

    assert_int_equal(party_id(b), 1);
    assert_int_equal(party_id(c), 7);
    functions_must_call_add(c, "worker0");
    functions_must_call_add(c, "worker1");
    functions_must_call_add(a, "worker7");
    functions_must_call_add(b, "worker7");
    functions_must_call_add(a, "worker1");
    party_leave(b);
    party_leave(c);
    party_leave(a);
}

TEST_WITH(dynamic_member_that_left_is_unknown_and_its_id_is_free, begin, NULL)
{
    struct tenrec_worker *a = party_join(-1, NULL, functions_register);
    struct tenrec_worker *b = party_join(-1, NULL, functions_register);
    tenrec_error err;

    functions_must_call_add(a, "worker1");
    party_leave(b);
    assert_int_equal(functions_call_add(a, "worker1", 1, 1, &err), TENREC_EPEER_UNKNOWN);
    assert_non_null(strstr(err.text, "has left the group"));
    b = party_join(-1, "other-name", functions_register);
    assert_int_equal(party_id(b), 1);
    functions_must_call_add(a, "other-name");
    functions_must_call_add(b, "worker0");
    party_leave(a);
    party_leave(b);
}

TEST_WITH(dynamic_member_comes_back_under_its_name, begin, NULL)
{
    struct tenrec_worker *a = party_join(-1, "a-0", functions_register);
    struct tenrec_worker *b;

    for (int i = 0; i < 5; i++) {
        b = party_join(3, "b-1", functions_register);
        functions_must_call_add(a, "b-1");
        functions_must_call_add(b, "a-0");
        party_leave(b);
    }
    party_leave(a);
}

/* ---- death ----------------------------------------------------------------- */

TEST_WITH(dynamic_dead_member_is_removed_and_its_id_used_again, begin, NULL)
{
    struct tenrec_worker *a = party_join(-1, NULL, functions_register);
    struct tenrec_worker *b = party_join(-1, NULL, functions_register);
    struct tenrec_worker *c = party_join(-1, NULL, functions_register);
    struct tenrec_worker *again;
    tenrec_error err;

    functions_must_call_add(a, "worker1");
    functions_must_call_add(b, "worker2");
    party_die(b);
    party_await(a, 2);
    party_await(c, 2);
    assert_int_equal(functions_call_add(a, "worker1", 1, 1, &err), TENREC_EPEER_UNKNOWN);
    again = party_join(1, NULL, functions_register);
    functions_must_call_add(a, "worker1");
    functions_must_call_add(again, "worker2");
    functions_must_call_add(c, "worker1");
    party_clear_away(b);
    functions_must_call_add(c, "worker1");
    party_leave(again);
    party_leave(c);
    party_leave(a);
}

TEST_WITH(dynamic_pending_calls_to_a_dying_member_fail, begin, NULL)
{
    struct tenrec_worker *a = party_join(-1, NULL, functions_register);
    struct tenrec_worker *b = party_join(-1, NULL, functions_register);
    struct tenrec_future *f = functions_hold(a, "worker1");
    tenrec_error err;

    party_die(b);
    assert_int_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), TENREC_EPEER_LOST);
    assert_string_equal(err.worker_name, "worker1");
    tenrec_future_drop(f);
    functions_open_gate();
    party_await(a, 1);
    party_clear_away(b);
    party_leave(a);
}

static void *barrier_of_all(void *w)
{
    tenrec_error *err = calloc(1, sizeof *err);

    tenrec_worker_barrier(w, NULL, 0, CLUSTER_LONG_MS, err);
    return err;
}

/* Meets the others as soon as all have joined, and leaves at once. */
static void *meet(void *arg)
{
    struct together *t = arg;
    tenrec_error err;

    if (tenrec_init_rpc(t->w, &err) != TENREC_OK ||
        tenrec_group_wait_members(t->w, t->n, CLUSTER_LONG_MS, &err) != TENREC_OK ||
        tenrec_worker_barrier(t->w, NULL, 0, CLUSTER_LONG_MS, &err) != TENREC_OK ||
        tenrec_shutdown(t->w, TENREC_GRACEFUL, CLUSTER_LONG_MS, &err) != TENREC_OK)
        t->why = strdup(err.text);
    return NULL;
}

static void meet_all(size_t n)
{
    struct together t[8];
    pthread_t thread[8];

    party_begin();
    for (size_t i = 0; i < n; i++) {
        t[i] = (struct together){ .w = party_worker(-1, NULL, NULL, NULL), .n = n };
        assert_int_equal(pthread_create(&thread[i], NULL, meet, &t[i]), 0);
    }
    for (size_t i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    for (size_t i = 0; i < n; i++)
        if (t[i].why)
            fail_msg("%s", t[i].why);
    for (size_t i = 0; i < n; i++)
        tenrec_worker_drop(t[i].w);
}

TEST(dynamic_members_meet_in_a_barrier_once_they_have_joined)
{
    for (size_t n = 3; n <= 6; n++)
        meet_all(n);
}

/* Sends what `w` sends when it joins the first gather of the set, which worker0 leads. */
static struct tenrec_future *join_gather(struct tenrec_worker *w, const struct participants *s)
{
    const struct tenrec_value item[] = { tenrec_value_text(s->text), tenrec_value_int(0),
                                         tenrec_value_int(CLUSTER_LONG_MS), tenrec_value_nil() };
    const struct tenrec_value array = tenrec_value_array(item, 4);
    struct call_spec spec = { .to = 0, .function = "all_gather", .want_value = true };
    struct tenrec_future *f = NULL;
    struct tenrec_msg *msg;
    tenrec_error err;

    assert_status(codec_write_value(&array, TENREC_MSG_GATHER, &msg, &err), &err);
    assert_status(call_begin_now(w, &spec, CLUSTER_LONG_MS, &err), &err);
    assert_status(call_send(w, &spec, msg, &f, &err), &err);
    return f;
}

/* The leader has counted its own gather. */
static bool leader_joined(struct tenrec_worker *w)
{
    bool joined;

    pthread_mutex_lock(&gathers_of(w)->lock);
    joined = gathers_of(w)->sets && gathers_of(w)->sets->next == 1;
    pthread_mutex_unlock(&gathers_of(w)->lock);
    return joined;
}

static struct participants *all_of(struct tenrec_worker *w)
{
    struct participants *all;
    tenrec_error err;

    assert_status(participants_of_names(&w->peers, NULL, 0, &all, &err), &err);
    return all;
}

/* worker2 joined the barrier and died, and worker1 joins it before it knows that. */
TEST_WITH(dynamic_a_barrier_that_all_have_joined_ends_though_one_has_died, begin, NULL)
{
    struct tenrec_worker *a = party_join(-1, NULL, functions_register);
    struct tenrec_worker *b = party_join(-1, NULL, functions_register);
    struct tenrec_worker *c = party_join(-1, NULL, functions_register);
    struct participants *all = all_of(c);
    struct tenrec_future *of_b, *of_c;
    pthread_t of_a;
    tenrec_error err;
    void *why;

    of_c = join_gather(c, all);
    functions_must_call_add(c, "worker0"); /* behind it */
    assert_int_equal(pthread_create(&of_a, NULL, barrier_of_all, a), 0);
    assert_becomes(leader_joined(a));
    party_die(c);
    party_await(a, 2);
    of_b = join_gather(b, all);
    assert_status(tenrec_future_wait(of_b, CLUSTER_LONG_MS, &err), &err);
    pthread_join(of_a, &why);
    assert_status(((tenrec_error *)why)->code, (tenrec_error *)why);
    free(why);
    tenrec_future_drop(of_b);
    tenrec_future_drop(of_c);
    participants_drop(all);
    party_clear_away(c);
    party_leave(b);
    party_leave(a);
}

/* The members of a set are named by a hash, and worker0 knows others by now. */
TEST_WITH(dynamic_a_barrier_of_former_members_fails_at_once, begin, NULL)
{
    struct tenrec_worker *a = party_join(-1, NULL, functions_register);
    struct tenrec_worker *b = party_join(-1, NULL, functions_register);
    struct participants *both = all_of(b);
    struct tenrec_worker *c = party_join(-1, NULL, functions_register);
    struct tenrec_future *f;
    tenrec_error err;

    assert_int_equal(both->text[0], '*');
    party_await(a, 3);
    f = join_gather(b, both);
    assert_int_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), TENREC_EGROUP);
    assert_text_has(err.text, "'worker0' knows others");
    tenrec_future_drop(f);
    participants_drop(both);
    party_leave(c);
    party_leave(b);
    party_leave(a);
}

/* A joiner is not kept out by one that died before anybody noticed. */
TEST_WITH(dynamic_worker_joins_while_a_member_is_dead, begin, NULL)
{
    struct tenrec_worker *a = party_join(-1, NULL, functions_register);
    struct tenrec_worker *b = party_join(-1, NULL, functions_register);
    struct tenrec_worker *c;

    party_die(b);
    c = party_join(-1, NULL, functions_register);
    functions_must_call_add(c, "worker0");
    functions_must_call_add(a, c->self.name);
    party_await(a, 2);
    party_await(c, 2);
    party_clear_away(b);
    party_leave(c);
    party_leave(a);
}

/* ---- one that was taken out ----------------------------------------------------- */

/* `a` finds `b` dead although it lives. An answer that is still under way says the contrary,
 * so that it may have to be found again. */
static void bury(struct tenrec_worker *a, struct tenrec_worker *b)
{
    const uint64_t deadline_ns = clock_deadline_ms(CLUSTER_LONG_MS);
    struct monitor *m = group_of(a)->monitor;

    pthread_mutex_lock(&m->lock);
    while (membership_view_find(&m->view, b->self.id, group_of(b)->monitor->incarnation) &&
           !clock_passed(deadline_ns)) {
        heartbeats_bury(&m->beats, b->self.id, group_of(b)->monitor->incarnation, clock_now_ns());
        monitor_wake(m);
        monitor_wait(m, clock_deadline_ms(AGAIN_MS));
    }
    pthread_mutex_unlock(&m->lock);
}

TEST_WITH(dynamic_removed_member_hears_of_the_removal_and_joins_anew, begin, NULL)
{
    struct tenrec_worker *a = party_join(-1, NULL, functions_register);
    struct tenrec_worker *b = party_join(-1, NULL, functions_register);
    tenrec_error err;

    functions_must_call_add(a, "worker1");
    functions_must_call_add(b, "worker0");
    bury(a, b);
    party_await(a, 1);
    assert_int_equal(tenrec_group_wait_members(b, 9, CLUSTER_LONG_MS, &err), TENREC_EGROUP);
    assert_non_null(strstr(err.text, "was removed from group \"default\" by 'worker0'"));
    assert_int_equal(functions_call_add(b, "worker0", 1, 1, &err), TENREC_EGROUP);
    tenrec_shutdown(b, TENREC_GRACEFUL, CLUSTER_LONG_MS, &err);
    assert_int_equal(tenrec_init_rpc(b, &err), TENREC_OK);
    functions_must_call_add(a, "worker1");
    functions_must_call_add(b, "worker0");
    party_leave(b);
    party_leave(a);
}

/* ---- callbacks of the program ---------------------------------------------------- */

struct diary {
    pthread_mutex_t lock;
    char text[512];
};

static void write_down(struct diary *d, const char *what, const char *name, tenrec_status why)
{
    size_t n;

    pthread_mutex_lock(&d->lock);
    n = strlen(d->text);
    snprintf(d->text + n, sizeof d->text - n, "%s %s %s;", what, name, tenrec_status_name(why));
    pthread_mutex_unlock(&d->lock);
}

static void on_joined(struct tenrec_worker *w, const struct tenrec_worker_info *who,
                      uint64_t version, void *arg)
{
    tenrec_error err;

    assert_int_equal(tenrec_group_wait_version(w, version, 1, &err), TENREC_EWOULDBLOCK);
    write_down(arg, "joined", who->name, TENREC_OK);
}

static void on_left(struct tenrec_worker *w, const struct tenrec_worker_info *who,
                    const tenrec_error *why, uint64_t version, void *arg)
{
    (void)w, (void)version;
    write_down(arg, "left", who->name, why->code);
}

static bool diary_has(struct diary *d, const char *text)
{
    bool has;

    pthread_mutex_lock(&d->lock);
    has = strstr(d->text, text) != NULL;
    pthread_mutex_unlock(&d->lock);
    return has;
}

TEST_WITH(dynamic_callbacks_report_joined_and_lost_members, begin, NULL)
{
    struct diary d = { .lock = PTHREAD_MUTEX_INITIALIZER };
    const struct tenrec_member_callbacks c = {
        .size = sizeof c, .joined = on_joined, .left = on_left, .arg = &d
    };
    struct tenrec_worker *a = party_worker(-1, NULL, NULL, functions_register);
    struct tenrec_worker *b, *x;
    tenrec_error err;

    assert_int_equal(tenrec_worker_set_member_callbacks(a, &c, &err), TENREC_OK);
    assert_int_equal(tenrec_init_rpc(a, &err), TENREC_OK);
    b = party_join(-1, NULL, functions_register);
    /* All were notified of the joiner, which waits for that. */
    assert_true(diary_has(&d, "joined worker1 OK;"));
    party_leave(b);
    x = party_join(-1, "x", functions_register);
    assert_true(diary_has(&d, "left worker1 OK;joined x OK;"));
    functions_must_call_add(a, "x");
    party_die(x);
    party_await(a, 1);
    assert_becomes(diary_has(&d, "left x EPEER_LOST;"));
    party_clear_away(x);
    party_leave(a);
}

/* ---- calls while others come and go -------------------------------------------------------- */

struct caller {
    struct tenrec_worker *w;
    const char *to;
    atomic_bool stop;
    atomic_int calls;
    tenrec_error err;
    tenrec_status st;
};

static void *call_on(void *arg)
{
    struct caller *c = arg;

    while (!atomic_load(&c->stop) && c->st == TENREC_OK) {
        c->st = functions_call_add(c->w, c->to, 20, 22, &c->err);
        atomic_fetch_add(&c->calls, 1);
    }
    return NULL;
}

TEST_WITH(dynamic_calls_go_on_while_other_members_come_and_go, begin, NULL)
{
    struct tenrec_worker *a = party_join(-1, NULL, functions_register);
    struct tenrec_worker *b = party_join(-1, NULL, functions_register);
    struct caller c[2] = { { .w = a, .to = "worker1" }, { .w = b, .to = "worker0" } };
    pthread_t thread[2];

    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, call_on, &c[i]), 0);
    for (int i = 0; i < 5; i++) {
        struct tenrec_worker *x = party_join(-1, "x", functions_register);
        struct tenrec_worker *y = party_join(-1, NULL, functions_register);
        functions_must_call_add(x, "worker0");
        functions_must_call_add(a, "x");
        functions_must_call_add(y, "x");
        if (i % 2) {
            party_leave(x);
        } else {
            party_die(x);
            party_await(a, 3);
            party_await(y, 3);
            party_clear_away(x);
        }
        party_leave(y);
    }
    for (int i = 0; i < 2; i++) {
        atomic_store(&c[i].stop, true);
        pthread_join(thread[i], NULL);
        if (c[i].st != TENREC_OK)
            fail_msg("%s", c[i].err.text);
        assert_true(atomic_load(&c[i].calls) > 0);
    }
    party_leave(b);
    party_leave(a);
}

struct many {
    int rank;
    struct tenrec_worker *w;
    tenrec_status st;
    tenrec_error err;
};

static void *join_one(void *arg)
{
    struct many *m = arg;

    m->st = tenrec_init_rpc(m->w, &m->err);
    return NULL;
}

static void *leave_one(void *arg)
{
    struct many *m = arg;

    m->st = tenrec_shutdown(m->w, TENREC_GRACEFUL, CLUSTER_LONG_MS, &m->err);
    return NULL;
}

static void at_once(struct many *m, size_t n, void *(*fn)(void *))
{
    pthread_t thread[CLUSTER_MAX];

    for (size_t i = 0; i < n; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, fn, &m[i]), 0);
    for (size_t i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    for (size_t i = 0; i < n; i++)
        if (m[i].st != TENREC_OK)
            fail_msg("worker %zu: %s", i, m[i].err.text);
}

TEST_WITH(dynamic_many_join_and_leave_at_once, begin, NULL)
{
    struct many m[6];

    for (int i = 0; i < 6; i++)
        m[i] = (struct many){ .w = party_worker(-1, NULL, NULL, functions_register) };
    at_once(m, 6, join_one);
    for (int i = 0; i < 6; i++)
        party_await(m[i].w, 6);
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 6; k++)
            functions_must_call_add(m[i].w, m[k].w->self.name);
    at_once(m, 6, leave_one);
    for (int i = 0; i < 6; i++)
        tenrec_worker_drop(m[i].w);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cluster_use(argv[1]);
    return testing_run(NULL, NULL);
}
