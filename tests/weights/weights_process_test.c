/* SPDX-License-Identifier: Apache-2.0 */
/* Weights between processes that are stopped; the backend in argv. */
#include "../testing.h"
#include "weights_support.h"

#include <signal.h>
#include <stdio.h>
#include <tenrec/testkit.h>
#include <unistd.h>

enum { ROWS = 1500, COLUMNS = 1000 }; /* 6 MB: several buckets */

static struct tenrec_test_group *group;
static struct tenrec_worker *w; /* rank 0, in this process */
static const char *backend = "tensorpipe";

/* ---- functions of the other processes -------------------------------------------------- */

static tenrec_status pid(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    const struct tenrec_value v = tenrec_value_int(getpid());

    (void)arg;
    return tenrec_call_return(c, &v, err);
}

/* Pulls version 1, and keeps it. */
static tenrec_status pull_one(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    static struct tenrec_weights *s;

    (void)arg;
    s = open_set(tenrec_call_worker(c));
    return pull(s, 1, matrix_new(ROWS, COLUMNS), NULL, err);
}

static tenrec_status add_functions(struct tenrec_worker *worker, int32_t rank, void *arg,
                                   tenrec_error *err)
{
    (void)rank, (void)arg;
    if (tenrec_worker_register_function(worker, "pid", pid, NULL, 0, err) != TENREC_OK)
        return err->code;
    return tenrec_worker_register_function(worker, "pull_one", pull_one, NULL, 0, err);
}

/* ---- the processes --------------------------------------------------------------------- */

static void open_three(void)
{
    static const char *const settings[] = { "worker.rpc_timeout=30s", NULL };
    const struct tenrec_test_options o = { .size = sizeof o,
                                           .mode = TENREC_TEST_PROCESSES,
                                           .flags = TENREC_TEST_IGNORE_LEAKS,
                                           .world_size = 3,
                                           .settings = settings,
                                           .backend = backend,
                                           .setup = add_functions };
    tenrec_error err;

    assert_status(tenrec_test_group_open(&o, &group, &err), &err);
    w = tenrec_test_group_worker(group, 0);
}

static void close_three(void)
{
    tenrec_error err;

    assert_status(tenrec_test_group_close(group, TENREC_IMMEDIATE, &err), &err);
}

static int64_t call_other(const char *name, const char *function)
{
    struct tenrec_value *v;
    tenrec_error err;
    int64_t n;

    assert_status(tenrec_rpc_sync(w, name, function, NULL, 0, NULL, &v, &err), &err);
    n = v->type == TENREC_VALUE_INT ? v->u.integer : 0;
    tenrec_value_drop(v);
    return n;
}

/* Returns the letter of the state of a process. */
static char letter_of(int64_t process)
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

/* The source is worker1: of two that have the version the keeper names the first. */
TEST_WITH(weights_come_from_another_source_when_one_is_stopped, open_three, close_three)
{
    static const int64_t shape[] = { ROWS, COLUMNS }, zero[] = { 0, 0 };
    struct tenrec_tensor *from = matrix_new(ROWS, COLUMNS), *to = matrix_new(ROWS, COLUMNS);
    struct tenrec_weights *s = open_set(w);
    struct pulling p = { .s = s, .version = 1, .t = to };
    int64_t process;
    tenrec_error err;

    assert_status(publish(s, 1, from, &err), &err);
    call_other("worker1", "pull_one");
    call_other("worker2", "pull_one");
    assert_status(tenrec_weights_withdraw(s, 1, CLUSTER_LONG_MS, &err), &err);
    process = call_other("worker1", "pid");
    assert_status(tenrec_test_group_kill(group, 1, SIGSTOP, &err), &err);
    assert_becomes(letter_of(process) == 'T');
    pull_begin(&p);
    pull_end(&p);
    assert_status(p.st, &p.err);
    assert_true(matrix_is(to, shape, zero, 1));
    assert_int_equal(letter_of(process), 'T');
    assert_status(tenrec_test_group_kill(group, 1, SIGCONT, &err), &err);
    tenrec_weights_close(s);
    tenrec_tensor_drop(from);
    tenrec_tensor_drop(to);
}

TEST_MAIN(backend = argv[1], NULL, NULL)
