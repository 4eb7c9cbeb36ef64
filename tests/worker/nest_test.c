/* SPDX-License-Identifier: Apache-2.0 */
/* nest_test.c - functions that wait for calls of functions that wait for calls, on the backend
 * named in argv: they end, or are refused at once. */
#include "../support/cluster.h"
#include "../support/functions.h"
#include "../testing.h"

#include <stdatomic.h>

enum { WIDE = 600, DEEP = 1000 };

static struct tenrec_future *nest(struct cluster *c, int64_t depth)
{
    const struct tenrec_value arg = tenrec_value_int(depth);
    struct tenrec_future *f = NULL;
    tenrec_error err;

    assert_status(tenrec_rpc_async(c->worker[0], "worker1", "nest", &arg, 1, NULL, &f, &err), &err);
    return f;
}

TEST(nest_of_a_thousand_calls_ends)
{
    struct tenrec_future *f;
    struct cluster c;
    tenrec_error err;

    cluster_open(&c, 2, NULL, functions_register);
    f = nest(&c, DEEP / (int)testing_slow());
    assert_status(tenrec_future_wait(f, TENREC_TIMEOUT_DEFAULT, &err), &err);
    tenrec_future_drop(f);
    cluster_close(&c, TENREC_GRACEFUL);
}

TEST(nests_of_many_callers_end)
{
    const size_t n = WIDE / testing_slow();
    struct tenrec_future *f[WIDE];
    struct cluster c;
    tenrec_error err;

    cluster_open(&c, 2, (const char *const[]){ "worker.num_worker_threads=8", NULL },
                 functions_register);
    for (size_t i = 0; i < n; i++)
        f[i] = nest(&c, 3);
    assert_status(tenrec_future_wait_all(f, n, TENREC_TIMEOUT_DEFAULT, &err), &err);
    for (size_t i = 0; i < n; i++)
        tenrec_future_drop(f[i]);
    cluster_close(&c, TENREC_GRACEFUL);
}

static atomic_int lines;

static void count_lines(void *arg, enum tenrec_log_level level, const char *part, const char *text)
{
    (void)arg, (void)level, (void)part;
    if (strstr(text, "calls are refused"))
        atomic_fetch_add(&lines, 1);
}

/* Each worker may have three threads. */
TEST(nest_is_refused_at_once_when_no_thread_can_be_added)
{
    static const char *const few[] = { "worker.num_worker_threads=1", "worker.max_queued_calls=2",
                                       NULL };
    struct tenrec_future *f;
    struct cluster c;
    tenrec_error err;

    tenrec_log_set_callback(count_lines, NULL);
    cluster_open(&c, 2, few, functions_register);
    for (int i = 0; i < 3; i++) {
        f = nest(&c, 20);
        assert_int_equal(tenrec_future_wait(f, TENREC_TIMEOUT_DEFAULT, &err), TENREC_EAGAIN);
        assert_text_has(err.text, "3 functions of this worker wait for other calls");
        tenrec_future_drop(f);
    }
    assert_int_equal(atomic_load(&lines), 1);
    f = nest(&c, 2);
    assert_status(tenrec_future_wait(f, TENREC_TIMEOUT_DEFAULT, &err), &err);
    tenrec_future_drop(f);
    cluster_close(&c, TENREC_GRACEFUL);
    tenrec_log_set_callback(NULL, NULL);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cluster_use(argv[1]);
    return testing_run(NULL, NULL);
}
