/* SPDX-License-Identifier: Apache-2.0 */
/* testkit_test.c - workers as threads and as processes, and how their failures
 * are reported. */
#include "../testing.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenrec/profiler.h>
#include <tenrec/rref.h>
#include <tenrec/store.h>
#include <tenrec/tenrec.h>
#include <tenrec/testkit.h>
#include <unistd.h>

/* The start of most cases; `two` has a second worker to fail. */
static struct tenrec_test_options options(uint32_t mode, tenrec_test_body_fn *body)
{
    return (struct tenrec_test_options){
        .size = sizeof(struct tenrec_test_options), .mode = mode, .world_size = 2, .body = body
    };
}

static const uint32_t modes[] = { TENREC_TEST_PROCESSES, TENREC_TEST_THREADS };
enum { MODES = 2 };

static tenrec_status give_rank(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_worker_info me;
    struct tenrec_value v;
    tenrec_status st = tenrec_get_worker_info(tenrec_call_worker(c), NULL, &me, err);

    (void)arg;
    v = tenrec_value_int(me.id);
    return st == TENREC_OK ? tenrec_call_return(c, &v, err) : st;
}

static tenrec_status setup(struct tenrec_worker *w, int32_t rank, void *arg, tenrec_error *err)
{
    (void)rank, (void)arg;
    return tenrec_worker_register_function(w, "rank", give_rank, NULL, TENREC_POOL, err);
}

static void ask_rank(struct tenrec_worker *w, int32_t rank)
{
    char name[TENREC_NAME_MAX + 1];
    struct tenrec_value *got = NULL;
    tenrec_error err;

    assert_status(
        tenrec_rpc_sync(w, tenrec_test_worker_name(rank, name), "rank", NULL, 0, NULL, &got, &err),
        &err);
    assert_int_equal(got->u.integer, rank);
    tenrec_value_drop(got);
}

/* ---- bodies ------------------------------------------------------------------ */

static tenrec_status ask_all(const struct tenrec_test *t, tenrec_error *err)
{
    char name[TENREC_NAME_MAX + 1];

    (void)err;
    assert_string_equal(t->name, tenrec_test_worker_name(t->rank, name));
    for (int32_t i = 0; i < t->world_size; i++)
        ask_rank(t->worker, i);
    return TENREC_OK;
}

TEST(kit_runs_the_body_in_each_worker)
{
    tenrec_error err;

    for (size_t i = 0; i < MODES; i++) {
        struct tenrec_test_options o = options(modes[i], ask_all);
        o.world_size = 0; /* four */
        o.setup = setup;
        tenrec_test_assert_ok(tenrec_test_dist_init(&o, &err), &err);
    }
}

static tenrec_status fail_in_one(const struct tenrec_test *t, tenrec_error *err)
{
    return t->rank == 1 ? tenrec_fail(err, TENREC_ENOTFOUND, "no such luck") : TENREC_OK;
}

TEST(kit_returns_the_error_of_a_body_with_its_worker)
{
    tenrec_error err;

    for (size_t i = 0; i < MODES; i++) {
        struct tenrec_test_options o = options(modes[i], fail_in_one);
        assert_int_equal(tenrec_test_dist_init(&o, &err), TENREC_ENOTFOUND);
        assert_string_equal(err.text, "worker1: no such luck");
        assert_int_equal(err.worker, 1);
        assert_string_equal(err.worker_name, "worker1");
    }
}

/* Worker 0 fails by itself, and the others on their calls of it. */
static tenrec_status fail_behind_one(const struct tenrec_test *t, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    if (t->rank == 0)
        return tenrec_fail(err, TENREC_EINVAL, "the cause");
    while (st == TENREC_OK)
        st = tenrec_rpc_sync(t->worker, "worker0", "tenrec.ping", NULL, 0, NULL, NULL, err);
    return st;
}

TEST(kit_tells_the_first_failure_when_other_failures_follow)
{
    tenrec_error err;

    for (int i = 0; i < 20; i++) {
        struct tenrec_test_options o = options(TENREC_TEST_THREADS, fail_behind_one);
        o.world_size = 4;
        assert_int_equal(tenrec_test_dist_init(&o, &err), TENREC_EINVAL);
        assert_string_equal(err.text, "worker0: the cause");
    }
}

static tenrec_status assert_in_one(const struct tenrec_test *t, tenrec_error *err)
{
    (void)err;
    if (t->rank == 1)
        assert_string_equal("that", "this");
    return TENREC_OK;
}

TEST(kit_fails_with_its_text_when_an_assertion_of_a_body_fails)
{
    struct tenrec_test_options o = options(TENREC_TEST_PROCESSES, assert_in_one);
    tenrec_error err;

    assert_int_equal(tenrec_test_dist_init(&o, &err), TENREC_EREMOTE);
    assert_text_has(err.text, "worker1: an assertion failed in its body");
    assert_text_has(err.text, "\"that\" != \"this\"");
    assert_text_has(err.text, "testkit_test.c:");
}

TEST(kit_fails_when_an_assertion_of_a_thread_fails)
{
    struct tenrec_test_options o = options(TENREC_TEST_THREADS, assert_in_one);
    tenrec_error err;

    assert_int_equal(tenrec_test_dist_init(&o, &err), TENREC_EREMOTE);
    assert_text_has(err.text, "worker1: an assertion failed in its body");
}

static tenrec_status crash(const struct tenrec_test *t, tenrec_error *err)
{
    (void)err;
    if (t->rank == 1) {
        printf("last words\n");
        fflush(stdout);
        raise(SIGSEGV);
    }
    return TENREC_OK;
}

TEST(kit_reports_the_signal_and_the_output_of_a_killed_worker)
{
    struct tenrec_test_options o = options(TENREC_TEST_PROCESSES, crash);
    tenrec_error err;

    assert_int_equal(tenrec_test_dist_init(&o, &err), TENREC_EPEER_LOST);
    assert_string_equal(err.text, "worker1: was killed by signal 11 (Segmentation fault) in its "
                                  "body; it printed: last words");
}

static tenrec_status leave_early(const struct tenrec_test *t, tenrec_error *err)
{
    (void)err;
    if (t->rank == 0)
        _exit(t->arg ? 3 : 0);
    return TENREC_OK;
}

TEST(kit_says_how_a_worker_exited)
{
    struct tenrec_test_options o = options(TENREC_TEST_PROCESSES, leave_early);
    tenrec_error err;

    assert_int_equal(tenrec_test_dist_init(&o, &err), TENREC_EPEER_LOST);
    assert_string_equal(err.text, "worker0: exited with status 0 in its body");
    o.arg = &o;
    assert_int_equal(tenrec_test_dist_init(&o, &err), TENREC_EPEER_LOST);
    assert_string_equal(err.text, "worker0: exited with status 3 in its body");
}

static tenrec_status hang(const struct tenrec_test *t, tenrec_error *err)
{
    (void)err;
    while (t->rank == 1)
        pause();
    return TENREC_OK;
}

TEST(kit_kills_a_process_that_hangs)
{
    struct tenrec_test_options o = options(TENREC_TEST_PROCESSES, hang);
    tenrec_error err;

    o.timeout_ms = 2000;
    assert_int_equal(tenrec_test_dist_init(&o, &err), TENREC_ETIMEDOUT);
    assert_string_equal(err.text, "worker1: hangs in its body");
}

static atomic_bool given_up;

static tenrec_status never(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    (void)c, (void)arg, (void)err;
    while (!atomic_load(&given_up))
        poll(NULL, 0, 1);
    return TENREC_OK;
}

static tenrec_status setup_never(struct tenrec_worker *w, int32_t rank, void *arg,
                                 tenrec_error *err)
{
    (void)rank, (void)arg;
    return tenrec_worker_register_function(w, "never", never, NULL, TENREC_POOL, err);
}

static tenrec_status wait_for_ever(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = TENREC_TIMEOUT_NONE };
    tenrec_status st;

    if (t->rank == 0)
        return TENREC_OK;
    st = tenrec_rpc_sync(t->worker, "worker0", "never", NULL, 0, &o, NULL, err);
    atomic_store(&given_up, true);
    return st;
}

TEST(kit_shuts_a_thread_down_that_hangs)
{
    struct tenrec_test_options o = options(TENREC_TEST_THREADS, wait_for_ever);
    tenrec_error err;

    o.setup = setup_never;
    o.timeout_ms = 2000;
    assert_int_equal(tenrec_test_dist_init(&o, &err), TENREC_ETIMEDOUT);
    assert_string_equal(err.text, "worker1: hangs in its body");
}

static tenrec_status leak_fd(const struct tenrec_test *t, tenrec_error *err)
{
    (void)err;
    if (t->rank == 1)
        open("/dev/null", O_RDONLY | O_CLOEXEC);
    return TENREC_OK;
}

TEST(kit_names_a_file_descriptor_that_a_worker_leaves)
{
    struct tenrec_test_options o = options(TENREC_TEST_PROCESSES, leak_fd);
    tenrec_error err;

    assert_int_equal(tenrec_test_dist_init(&o, &err), TENREC_EBUSY);
    assert_text_has(err.text, "worker1: 1 file descriptors and 0 threads are left");
    assert_text_has(err.text, "(/dev/null)");
    o.flags = TENREC_TEST_IGNORE_LEAKS;
    tenrec_test_assert_ok(tenrec_test_dist_init(&o, &err), &err);
}

static struct tenrec_rref *left; /* by a worker, for the test to drop */

static tenrec_status leak_reference(const struct tenrec_test *t, tenrec_error *err)
{
    if (t->rank == 0)
        return TENREC_OK;
    assert_status(tenrec_remote(t->worker, "worker0", "rank", NULL, 0, NULL, &left, err), err);
    return tenrec_rref_to_here(left, NULL, NULL, err);
}

TEST(kit_names_a_reference_that_a_worker_leaves)
{
    struct tenrec_test_options o = options(TENREC_TEST_THREADS, leak_reference);
    tenrec_error err;

    o.setup = setup;
    assert_int_equal(tenrec_test_dist_init(&o, &err), TENREC_EBUSY);
    assert_text_has(err.text, "worker1: ");
    assert_text_has(err.text, "created_on=1");
    tenrec_rref_drop(left);
    o.flags = TENREC_TEST_IGNORE_LEAKS;
    tenrec_test_assert_ok(tenrec_test_dist_init(&o, &err), &err);
    tenrec_rref_drop(left);
}

static tenrec_status die(const struct tenrec_test *t, tenrec_error *err)
{
    tenrec_error why;

    if (t->rank == 1) {
        tenrec_test_die(t);
        return TENREC_OK;
    }
    if (tenrec_test_wait_until_node_failure(t->worker, 1, TENREC_OK, 10000, &why, err) != TENREC_OK)
        return err->code;
    assert_true(why.code == TENREC_EPEER_LOST || why.code == TENREC_ECONNECT);
    return TENREC_OK;
}

TEST(kit_lets_a_worker_die_on_purpose)
{
    tenrec_error err;

    for (size_t i = 0; i < MODES; i++) {
        struct tenrec_test_options o = options(modes[i], die);
        tenrec_test_assert_ok(tenrec_test_dist_init(&o, &err), &err);
    }
}

TEST(kit_reports_that_no_worker_fails_within_the_limit)
{
    struct tenrec_test_options o = options(TENREC_TEST_THREADS, NULL);
    struct tenrec_test_group *g = NULL;
    tenrec_error err;

    tenrec_test_assert_ok(tenrec_test_group_open(&o, &g, &err), &err);
    assert_int_equal(tenrec_test_wait_until_node_failure(tenrec_test_group_worker(g, 0), 1,
                                                         TENREC_OK, 10, NULL, &err),
                     TENREC_ETIMEDOUT);
    assert_text_has(err.text, "'worker1' has not failed within 10 ms; the last call: ");
    tenrec_test_assert_ok(tenrec_test_group_close(g, TENREC_GRACEFUL, &err), &err);
}

/* ---- groups -------------------------------------------------------------------- */

TEST(kit_opens_a_group_that_the_test_drives)
{
    tenrec_error err;

    for (size_t i = 0; i < MODES; i++) {
        struct tenrec_test_options o = options(modes[i], NULL);
        struct tenrec_test_group *g = NULL;
        o.world_size = 3;
        o.setup = setup;
        tenrec_test_assert_ok(tenrec_test_group_open(&o, &g, &err), &err);
        for (int32_t rank = 0; rank < 3; rank++)
            ask_rank(tenrec_test_group_worker(g, 0), rank);
        assert_int_equal(tenrec_test_group_worker(g, 1) != NULL, modes[i] == TENREC_TEST_THREADS);
        assert_null(tenrec_test_group_worker(g, 3));
        tenrec_test_assert_ok(tenrec_test_group_close(g, TENREC_GRACEFUL, &err), &err);
    }
}

TEST(kit_kills_a_worker_of_a_group)
{
    tenrec_error err;

    for (size_t i = 0; i < MODES; i++) {
        struct tenrec_test_options o = options(modes[i], NULL);
        struct tenrec_test_group *g = NULL;
        struct tenrec_worker *w;
        tenrec_test_assert_ok(tenrec_test_group_open(&o, &g, &err), &err);
        w = tenrec_test_group_worker(g, 0);
        tenrec_test_assert_ok(tenrec_test_group_kill(g, 1, SIGKILL, &err), &err);
        assert_int_equal(tenrec_test_group_kill(g, 1, SIGKILL, &err), TENREC_ESHUTDOWN);
        assert_int_equal(tenrec_test_group_kill(g, 0, SIGKILL, &err), TENREC_EINVAL);
        tenrec_test_assert_ok(
            tenrec_test_wait_until_node_failure(w, 1, TENREC_OK, 10000, NULL, &err), &err);
        tenrec_test_assert_ok(tenrec_test_group_close(g, TENREC_GRACEFUL, &err), &err);
    }
}

TEST(kit_keeps_groups_apart)
{
    struct tenrec_test_options o = options(TENREC_TEST_THREADS, NULL);
    struct tenrec_test_group *g[2] = { NULL, NULL };
    tenrec_error err;

    o.flags = TENREC_TEST_IGNORE_LEAKS; /* each sees the threads of the other */
    for (size_t i = 0; i < 2; i++)
        tenrec_test_assert_ok(tenrec_test_group_open(&o, &g[i], &err), &err);
    for (size_t i = 0; i < 2; i++)
        tenrec_test_assert_ok(tenrec_test_group_close(g[i], TENREC_GRACEFUL, &err), &err);
    tenrec_test_assert_ok(tenrec_test_group_close(NULL, TENREC_GRACEFUL, &err), &err);
}

/* Not when a busy machine lets the limit pass before the first answer. */
static bool counts_do_not_come(struct tenrec_worker *w)
{
    tenrec_error err;

    return tenrec_test_wait_until_owners_and_forks_on_rank(w, 3, 4, 1, 300, &err) ==
               TENREC_ETIMEDOUT &&
           strstr(err.text, "has 0 owners and 0 forks after 300 ms, expected 3 and 4");
}

TEST(kit_waits_for_counts_of_references)
{
    struct tenrec_test_options o = options(TENREC_TEST_THREADS, NULL);
    struct tenrec_test_group *g = NULL;
    struct tenrec_worker *w;
    tenrec_error err;
    int64_t owners = -1, forks = -1;

    tenrec_test_assert_ok(tenrec_test_group_open(&o, &g, &err), &err);
    w = tenrec_test_group_worker(g, 0);
    tenrec_test_assert_ok(tenrec_test_wait_until_pending_futures_and_users_flushed(w, 5000, &err),
                          &err);
    tenrec_test_assert_ok(tenrec_test_get_num_owners_and_forks(w, 1, &owners, &forks, &err), &err);
    assert_int_equal(owners, 0);
    assert_int_equal(forks, 0);
    assert_becomes(counts_do_not_come(w));
    assert_int_equal(tenrec_test_wait_until_owners_and_forks_on_rank(w, 0, 0, 7, 20, &err),
                     TENREC_EPEER_UNKNOWN);
    tenrec_test_assert_ok(tenrec_test_group_close(g, TENREC_GRACEFUL, &err), &err);
}

TEST(kit_finds_an_event_by_a_part_of_its_name)
{
    struct tenrec_test_options o = options(TENREC_TEST_THREADS, NULL);
    const struct tenrec_event *event = NULL;
    struct tenrec_test_group *g = NULL;
    struct tenrec_profiler *p = NULL;
    struct tenrec_worker *w;
    tenrec_error err;

    o.setup = setup;
    tenrec_test_assert_ok(tenrec_test_group_open(&o, &g, &err), &err);
    w = tenrec_test_group_worker(g, 0);
    tenrec_test_assert_ok(tenrec_profiler_start(w, NULL, &p, &err), &err);
    ask_rank(w, 1);
    tenrec_test_assert_ok(tenrec_profiler_stop(p, &err), &err);
    tenrec_test_assert_ok(tenrec_test_get_function_event(p, "#remote_op: rank", &event, &err),
                          &err);
    assert_string_equal(event->worker_name, "worker1");
    assert_int_equal(tenrec_test_get_function_event(p, "rnak", &event, &err), TENREC_ENOTFOUND);
    assert_text_has(err.text, "\"rnak\"");
    tenrec_profiler_drop(p);
    tenrec_test_assert_ok(tenrec_test_group_close(g, TENREC_GRACEFUL, &err), &err);
}

/* ---- settings ------------------------------------------------------------------- */

TEST(kit_takes_backend_options_and_faults_in_code)
{
    static const char *const fail[] = { "CALL", NULL }, *const delay[] = { NULL };
    static const char *const settings[] = { "worker.name=trainer{rank}", "worker.rpc_timeout=7s",
                                            NULL };
    struct tenrec_test_options o = options(TENREC_TEST_THREADS, NULL);
    struct tenrec_test_group *g = NULL;
    struct tenrec_worker *w;
    tenrec_error err;

    o.backend = "faulty";
    o.num_fail_sends = 1;
    o.settings = settings;
    tenrec_test_set_single_threaded(&o);
    tenrec_test_setup_fault_injection(&o, fail, NULL);
    tenrec_test_setup_fault_injection(&o, NULL, delay);
    tenrec_test_assert_ok(tenrec_test_group_open(&o, &g, &err), &err);
    w = tenrec_test_group_worker(g, 0);
    assert_int_equal(tenrec_worker_get_rpc_timeout(w), 7000);
    assert_int_equal(tenrec_rpc_sync(w, "trainer1", TENREC_TEST_NOOP, NULL, 0, NULL, NULL, &err),
                     TENREC_EINJECTED);
    assert_status(tenrec_rpc_sync(w, "trainer1", TENREC_TEST_NOOP, NULL, 0, NULL, NULL, &err),
                  &err);
    tenrec_test_assert_ok(tenrec_test_group_close(g, TENREC_GRACEFUL, &err), &err);
}

static tenrec_status meet(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_process_group *pg = NULL;

    assert_null(t->worker);
    assert_status(tenrec_test_initialize_pg(t->init_method, t->rank, t->world_size, &pg, err), err);
    assert_status(tenrec_process_group_barrier(pg, tenrec_test_stretch_ms(10000), err), err);
    tenrec_process_group_drop(pg);
    return TENREC_OK;
}

TEST(kit_meets_without_rpc)
{
    tenrec_error err;

    for (size_t i = 0; i < MODES; i++) {
        struct tenrec_test_options o = options(modes[i], meet);
        o.flags = TENREC_TEST_NO_RPC;
        tenrec_test_assert_ok(tenrec_test_dist_init(&o, &err), &err);
    }
}

TEST(kit_meets_in_a_tcp_store)
{
    struct tenrec_test_options o = options(TENREC_TEST_PROCESSES, ask_all);
    tenrec_error err;

    o.flags = TENREC_TEST_TCP_STORE;
    o.setup = setup;
    tenrec_test_assert_ok(tenrec_test_dist_init(&o, &err), &err);
}

static tenrec_status setup_fails(struct tenrec_worker *w, int32_t rank, void *arg,
                                 tenrec_error *err)
{
    (void)w, (void)arg;
    return rank == 0 ? tenrec_fail(err, TENREC_EINVAL, "not today") : TENREC_OK;
}

TEST(kit_ends_the_others_when_a_worker_does_not_start)
{
    tenrec_error err;

    for (size_t i = 0; i < MODES; i++) {
        static const char *const settings[] = { "worker.init_timeout=2s", NULL };
        struct tenrec_test_options o = options(modes[i], NULL);
        struct tenrec_test_group *g = NULL;
        o.setup = setup_fails;
        o.settings = settings;
        assert_int_equal(tenrec_test_group_open(&o, &g, &err), TENREC_EINVAL);
        assert_string_equal(err.text, "worker0: not today");
        assert_null(g);
    }
}

TEST(kit_refuses_wrong_options)
{
    static const char *const list[] = { "worker.name", NULL };
    const struct tenrec_test_options good = options(TENREC_TEST_THREADS, NULL);
    struct tenrec_test_options bad[] = { good, good, good, good, good, good, good, good };
    tenrec_error err;

    bad[0].size = 0;
    bad[1].mode = 7;
    bad[2].world_size = -1;
    bad[3].config = bad[3].config_text = "";
    bad[4].flags = TENREC_TEST_TCP_STORE;
    bad[5].settings = list;
    bad[6].backend_options = list;
    bad[7].timeout_ms = -1;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (tenrec_test_dist_init(&bad[i], &err) != TENREC_EINVAL)
            fail_msg("%zu: %s", i, err.text);
    assert_int_equal(tenrec_test_dist_init(NULL, &err), TENREC_EINVAL);
}
