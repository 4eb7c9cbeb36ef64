/* SPDX-License-Identifier: Apache-2.0 */
/* Regions between processes that are stopped and killed; the backend in argv, with its options. */
#include "../testing.h"
#include "region_support.h"

#include <signal.h>
#include <stdio.h>
#include <tenrec/testkit.h>
#include <unistd.h>

enum { SIZE = 32 << 20, PART = SIZE / 4 };

static struct tenrec_test_group *group;
static struct tenrec_worker *w; /* rank 0, in this process */
static const char *backend = "tensorpipe";
static const char *const *backend_options;

/* ---- functions of the other process ---------------------------------------------------- */

static tenrec_status pid(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    const struct tenrec_value v = tenrec_value_int(getpid());

    (void)arg;
    return tenrec_call_return(c, &v, err);
}

/* Makes a region, which lives as long as the process. */
static tenrec_status offer(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    static struct tenrec_tensor *t;
    struct tenrec_region_ref ref;
    struct tenrec_region *r;
    struct tenrec_value v;

    (void)arg;
    t = bytes_new(SIZE, 1);
    if (tenrec_region_new(tenrec_call_worker(c), t, BOTH, &r, err) != TENREC_OK)
        return err->code;
    tenrec_region_describe(r, &ref);
    v = tenrec_value_region(&ref);
    return tenrec_call_return(c, &v, err);
}

/* Reads or writes the region again and again until that fails, and returns the status. A read that
 * succeeds has the bytes of bytes_new(SIZE, 1), or the status is EREMOTE. */
static tenrec_status go_on(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *local = bytes_new(SIZE, 9);
    const struct tenrec_region_ref *ref;
    struct tenrec_bulk e;
    struct tenrec_value v;
    tenrec_status st = tenrec_call_get_args(c, err, "g", &ref);

    if (st != TENREC_OK)
        return st;
    e = arg ? writing(ref, 0, SIZE, local, 0) : reading(ref, 0, SIZE, local, 0);
    while (st == TENREC_OK) {
        st = transfer(tenrec_call_worker(c), &e, 1, err);
        if (st == TENREC_OK && !arg && !bytes_are(local, 0, SIZE, 1))
            st = TENREC_EREMOTE;
    }
    tenrec_tensor_drop(local);
    v = tenrec_value_int(st);
    return tenrec_call_return(c, &v, err);
}

static tenrec_status add_functions(struct tenrec_worker *worker, int32_t rank, void *arg,
                                   tenrec_error *err)
{
    static char writes[] = "writes";

    (void)rank, (void)arg;
    if (tenrec_worker_register_function(worker, "pid", pid, NULL, 0, err) != TENREC_OK ||
        tenrec_worker_register_function(worker, "offer", offer, NULL, 0, err) != TENREC_OK ||
        tenrec_worker_register_function(worker, "read", go_on, NULL, 0, err) != TENREC_OK)
        return err->code;
    return tenrec_worker_register_function(worker, "write", go_on, writes, 0, err);
}

/* ---- the two processes --------------------------------------------------------------------- */

static void open_two(void)
{
    static const char *const settings[] = { "worker.rpc_timeout=30s", NULL };
    const struct tenrec_test_options o = { .size = sizeof o,
                                           .mode = TENREC_TEST_PROCESSES,
                                           .flags = TENREC_TEST_IGNORE_LEAKS,
                                           .world_size = 2,
                                           .settings = settings,
                                           .backend = backend,
                                           .backend_options = backend_options,
                                           .setup = add_functions };
    tenrec_error err;

    assert_status(tenrec_test_group_open(&o, &group, &err), &err);
    w = tenrec_test_group_worker(group, 0);
}

static void close_two(void)
{
    tenrec_error err;

    assert_status(tenrec_test_group_close(group, TENREC_IMMEDIATE, &err), &err);
}

static void send_signal(int signal)
{
    tenrec_error err;

    assert_status(tenrec_test_group_kill(group, 1, signal, &err), &err);
}

static int64_t pid_of_other(void)
{
    struct tenrec_value *v;
    tenrec_error err;
    int64_t n;

    assert_status(tenrec_rpc_sync(w, "worker1", "pid", NULL, 0, NULL, &v, &err), &err);
    n = v->u.integer;
    tenrec_value_drop(v);
    return n;
}

/* Returns the letter of the state of a process. */
static char state_of(int64_t process)
{
    char path[64], state = '?';
    FILE *f;

    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)process);
    f = fopen(path, "r");
    if (f && fscanf(f, "%*d %*s %c", &state) != 1)
        state = '?';
    if (f)
        fclose(f);
    return state;
}

static void stop_other(int64_t process)
{
    send_signal(SIGSTOP);
    assert_becomes(state_of(process) == 'T');
}

/* ---- an owner that is lost ------------------------------------------------------------------ */

TEST_WITH(batch_ends_at_once_when_its_owner_is_killed, open_two, NULL)
{
    const int64_t process = pid_of_other();
    struct tenrec_tensor *local = bytes_new(SIZE, 0);
    struct tenrec_future *f, *visible, *is_free;
    const struct tenrec_bulk_options o = {
        .size = sizeof o, .then = "pid", .ret_visible = &visible, .ret_free = &is_free
    };
    const struct tenrec_region_ref *ref;
    struct tenrec_value *v;
    struct tenrec_bulk e[4];
    tenrec_error err;

    assert_status(tenrec_rpc_sync(w, "worker1", "offer", NULL, 0, NULL, &v, &err), &err);
    ref = v->u.region;
    for (uint64_t i = 0; i < 4; i++)
        e[i] = i % 2 ? reading(ref, i * PART, PART, local, i * PART)
                     : writing(ref, i * PART, PART, local, i * PART);
    stop_other(process);
    assert_status(tenrec_bulk_async(w, e, 4, &o, &f, &err), &err);
    assert_false(tenrec_future_done(f));
    send_signal(SIGKILL);
    assert_int_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), TENREC_EPEER_LOST);
    assert_text_has(err.text, "entry ");
    assert_int_equal(tenrec_future_wait(visible, CLUSTER_LONG_MS, &err), TENREC_EPEER_LOST);
    assert_status(tenrec_future_wait(is_free, CLUSTER_LONG_MS, &err), &err);
    tenrec_future_drop(f);
    tenrec_future_drop(visible);
    tenrec_future_drop(is_free);
    tenrec_value_drop(v);
    tenrec_tensor_drop(local);
    close_two();
}

/* ---- peers in the way of a revoke ----------------------------------------------------------- */

/* Begins the function at the other process, and stops it in the middle of a transfer. */
static struct tenrec_future *begin_and_stop(const char *function, struct tenrec_region *r)
{
    const struct tenrec_region_ref ref = ref_of(r);
    const struct tenrec_value arg = tenrec_value_region(&ref);
    const int64_t process = pid_of_other();
    struct tenrec_future *f;
    tenrec_error err;

    assert_status(tenrec_rpc_async(w, "worker1", function, &arg, 1, NULL, &f, &err), &err);
    for (;;) {
        assert_becomes(tenrec_region_pending(r) > 0);
        stop_other(process);
        if (tenrec_region_pending(r) > 0)
            return f;
        send_signal(SIGCONT);
    }
}

/* The function has ended because the region was revoked. */
static void expect_stale(struct tenrec_future *f)
{
    tenrec_error err;

    assert_status(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), &err);
    assert_int_equal(tenrec_future_value(f)->u.integer, TENREC_ESTALE);
    tenrec_future_drop(f);
}

TEST_WITH(revoke_names_a_reader_that_is_stopped_and_waits_for_it, open_two, close_two)
{
    struct tenrec_tensor *memory = bytes_new(SIZE, 1);
    struct tenrec_region *r = region_of(w, memory, BOTH);
    struct tenrec_future *f = begin_and_stop("read", r);
    tenrec_error err;

    assert_int_equal(tenrec_region_revoke(r, 50, &err), TENREC_ETIMEDOUT);
    assert_text_has(err.text, "'worker1' reads");
    assert_true(tenrec_region_pending(r) > 0);
    send_signal(SIGCONT);
    assert_status(tenrec_region_revoke(r, CLUSTER_LONG_MS, &err), &err);
    memset(tenrec_tensor_data(memory), 0, SIZE);
    expect_stale(f);
    tenrec_region_drop(r);
    tenrec_tensor_drop(memory);
}

/* The writer is stopped or goes on: the memory changes no more once the revoke has returned. */
TEST_WITH(write_changes_no_byte_after_a_revoke, open_two, close_two)
{
    struct tenrec_tensor *memory = bytes_new(SIZE, 1);
    struct tenrec_region *r = region_of(w, memory, BOTH);
    struct tenrec_future *f = begin_and_stop("write", r);
    tenrec_error err;

    if (tenrec_region_revoke(r, 50, &err) != TENREC_OK)
        assert_text_has(err.text, "'worker1' writes");
    send_signal(SIGCONT);
    assert_status(tenrec_region_revoke(r, CLUSTER_LONG_MS, &err), &err);
    for (size_t i = 0; i < SIZE; i++)
        ((unsigned char *)tenrec_tensor_data(memory))[i] = (unsigned char)(77 + i);
    expect_stale(f);
    assert_true(bytes_are(memory, 0, SIZE, 77));
    tenrec_region_drop(r);
    tenrec_tensor_drop(memory);
}

TEST_WITH(revoke_ends_when_the_reader_in_its_way_is_killed, open_two, NULL)
{
    struct tenrec_tensor *memory = bytes_new(SIZE, 1);
    struct tenrec_region *r = region_of(w, memory, BOTH);
    struct tenrec_future *f = begin_and_stop("read", r);
    tenrec_error err;

    assert_int_equal(tenrec_region_revoke(r, 50, &err), TENREC_ETIMEDOUT);
    send_signal(SIGKILL);
    assert_status(tenrec_region_revoke(r, CLUSTER_LONG_MS, &err), &err);
    assert_int_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), TENREC_EPEER_LOST);
    tenrec_future_drop(f);
    tenrec_region_drop(r);
    tenrec_tensor_drop(memory);
    close_two();
}

int main(int argc, char **argv)
{
    if (argc > 1)
        backend = argv[1];
    if (argc > 2)
        backend_options = (const char *const *)&argv[2];
    return testing_run(NULL, NULL);
}
