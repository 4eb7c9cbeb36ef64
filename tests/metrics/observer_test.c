/* SPDX-License-Identifier: Apache-2.0 */
/* observer_test.c - observers of the process, by a plugin that writes what it gets into a file. */
#include "observe/metrics/observer.h"

#include "../support/cluster.h"
#include "../testing.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[] = "/tmp/tenrec-tray-XXXXXX";

static int tray_make(void **state)
{
    int fd;

    (void)state;
    memcpy(path + strlen(path) - 6, "XXXXXX", 6);
    fd = mkstemp(path);
    return fd < 0 || close(fd);
}

static int tray_remove(void **state)
{
    (void)state;
    return unlink(path);
}

static void tray_holds(const char *wanted)
{
    char got[256] = "";
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    got[fread(got, 1, sizeof got - 1, f)] = '\0';
    fclose(f);
    assert_string_equal(got, wanted);
}

static struct tenrec_config *config_make(const char *observe)
{
    struct tenrec_config *config = cluster_config();
    char entry[512];
    tenrec_error err;

    snprintf(entry, sizeof entry, "{tray: {plugin: %s}}", getenv("TENREC_TEST_TRAY"));
    assert_status(tenrec_config_set(config, "observers", entry, &err), &err);
    assert_status(tenrec_config_set(config, "observe", observe, &err), &err);
    return config;
}

static struct observer_choice *choice_load(void)
{
    static const struct position where = { .kind = POSITION_CODE };
    struct tenrec_config *config = config_make("{}");
    struct observer_choice *choice;
    tenrec_error err;

    assert_status(observer_choice_load(config, "tray", &where, &choice, &err), &err);
    tenrec_config_drop(config);
    return choice;
}

static void an_address_is_opened_once(void **state)
{
    struct observer_choice *choice = choice_load();
    struct observer *one, *other;
    tenrec_error err;

    (void)state;
    assert_status(observer_open(choice, path, &one, &err), &err);
    assert_status(observer_open(choice, path, &other, &err), &err);
    observer_choice_drop(choice);
    assert_ptr_equal(one, other);
    observer_close(one);
    tray_holds("open ");
    observer_close(other);
    tray_holds("open close ");
}

static void span_add(struct trace_sink *sink, const char *function)
{
    struct trace_context t = { { 1 }, { 2 }, TRACE_SAMPLED };
    struct tenrec_span *s = trace_span_new(sink, TENREC_SPAN_CLIENT, &t, false, function, "w1");

    assert_non_null(s);
    trace_span_end(s, TENREC_OK, s->start_ns + 1);
}

static void a_plugin_gets_spans_and_reads_the_metrics(void **state)
{
    struct observer_choice *choice = choice_load();
    struct trace_sink *sink = span_source_new();
    tenrec_error err;

    (void)state;
    assert_non_null(sink);
    assert_status(span_source_start(sink, choice, path, "service", "w0", &err), &err);
    observer_choice_drop(choice);
    span_add(sink, "f");
    span_add(sink, "g");
    span_source_stop(sink);
    span_add(sink, "late"); /* of a function that still runs */
    assert_int_equal(sink->sent, 2);
    assert_int_equal(sink->dropped, 1);
    span_source_drop(sink);
    tray_holds("open f g w0:0 close ");
}

/* The observer of the parent has no thread in the child. */
static void the_child_of_a_fork_opens_its_own(void **state)
{
    struct observer_choice *choice = choice_load();
    struct observer *o;
    tenrec_error err;
    int status = -1;
    pid_t pid;

    (void)state;
    assert_status(observer_open(choice, path, &o, &err), &err);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        observer_close(o); /* the parent's */
        if (observer_open(choice, path, &o, &err) != TENREC_OK)
            _exit(1);
        observer_close(o);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    observer_close(o);
    observer_choice_drop(choice);
    tray_holds("open open close close ");
}

static void an_address_that_is_refused_is_an_error_with_the_observer(void **state)
{
    struct observer_choice *choice = choice_load();
    struct observer *e;
    tenrec_error err;

    (void)state;
    assert_int_equal(observer_open(choice, "/nowhere/x", &e, &err), TENREC_EINVAL);
    assert_text_has(err.text, "observer 'tray': cannot write '/nowhere/x'");
    observer_choice_drop(choice);
}

static void worker_runs(const char *observe)
{
    struct tenrec_config *config = config_make(observe);
    struct tenrec_worker *w;
    tenrec_error err;

    assert_status(tenrec_config_set(config, "worker.rank", "0", &err), &err);
    assert_status(tenrec_config_set(config, "worker.world_size", "1", &err), &err);
    assert_status(tenrec_config_set(config, "init_method", "memory://observer", &err), &err);
    assert_status(tenrec_worker_new(config, &w, &err), &err);
    tenrec_config_drop(config);
    assert_status(tenrec_init_rpc(w, &err), &err);
    assert_status(tenrec_shutdown(w, TENREC_GRACEFUL, CLUSTER_LONG_MS, &err), &err);
    tenrec_worker_drop(w);
}

static void a_worker_opens_and_closes_its_observer(void **state)
{
    char observe[128];

    (void)state;
    snprintf(observe, sizeof observe, "{metrics: %s, metrics_observer: tray}", path);
    worker_runs(observe);
    tray_holds("open close ");
}

static void no_mistake_stops_a_worker(void **state)
{
    (void)state;
    worker_runs("{metrics: /nowhere/x, metrics_observer: tray}");
    worker_runs("{metrics: /nowhere/x, metrics_observer: trya}");
    worker_runs("{metrics: [nowhere]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_address_is_opened_once, tray_make, tray_remove),
        cmocka_unit_test_setup_teardown(a_plugin_gets_spans_and_reads_the_metrics, tray_make,
                                        tray_remove),
        cmocka_unit_test_setup_teardown(the_child_of_a_fork_opens_its_own, tray_make, tray_remove),
        cmocka_unit_test(an_address_that_is_refused_is_an_error_with_the_observer),
        cmocka_unit_test_setup_teardown(a_worker_opens_and_closes_its_observer, tray_make,
                                        tray_remove),
        cmocka_unit_test(no_mistake_stops_a_worker),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
