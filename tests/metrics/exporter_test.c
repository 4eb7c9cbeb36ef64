/* SPDX-License-Identifier: Apache-2.0 */
/* exporter_test.c - exporters of the process, by a plugin that writes what it gets into a file. */
#include "observe/metrics/exporter.h"

#include "../support/cluster.h"
#include "../testing.h"

#include <stdlib.h>
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
    assert_status(tenrec_config_set(config, "exporters", entry, &err), &err);
    assert_status(tenrec_config_set(config, "observe", observe, &err), &err);
    return config;
}

static struct exporter_choice *choice_load(void)
{
    static const struct place place = { .kind = PLACE_CODE };
    struct tenrec_config *config = config_make("{}");
    struct exporter_choice *choice;
    tenrec_error err;

    assert_status(exporter_choice_load(config, "tray", &place, &choice, &err), &err);
    tenrec_config_drop(config);
    return choice;
}

static void an_address_is_opened_once(void **state)
{
    struct exporter_choice *choice = choice_load();
    struct exporter *one, *other;
    tenrec_error err;

    (void)state;
    assert_status(exporter_open(choice, path, &one, &err), &err);
    assert_status(exporter_open(choice, path, &other, &err), &err);
    exporter_choice_drop(choice);
    assert_ptr_equal(one, other);
    assert_status(exporter_post(one, "batch", 5, 1000, &err), &err);
    exporter_close(one);
    tray_holds("open batch ");
    exporter_close(other);
    tray_holds("open batch close ");
}

static void a_plugin_can_read_the_metrics_and_refuse_a_batch(void **state)
{
    struct exporter_choice *choice = choice_load();
    struct exporter *e;
    tenrec_error err;

    (void)state;
    assert_status(exporter_open(choice, path, &e, &err), &err);
    assert_status(exporter_post(e, "metrics", 7, 1000, &err), &err);
    assert_int_equal(exporter_post(e, "refuse", 6, 1000, &err), TENREC_EPERM);
    exporter_close(e);
    exporter_choice_drop(choice);
    tray_holds("open # HELP close ");
}

static void an_address_that_is_refused_is_an_error_with_the_exporter(void **state)
{
    struct exporter_choice *choice = choice_load();
    struct exporter *e;
    tenrec_error err;

    (void)state;
    assert_int_equal(exporter_open(choice, "nowhere", &e, &err), TENREC_EINVAL);
    assert_string_equal(err.text, "exporter 'tray': there is no file 'nowhere'");
    exporter_choice_drop(choice);
}

static void worker_runs(const char *observe)
{
    struct tenrec_config *config = config_make(observe);
    struct tenrec_worker *w;
    tenrec_error err;

    assert_status(tenrec_config_set(config, "worker.rank", "0", &err), &err);
    assert_status(tenrec_config_set(config, "worker.world_size", "1", &err), &err);
    assert_status(tenrec_config_set(config, "init_method", "memory://exporter", &err), &err);
    assert_status(tenrec_worker_new(config, &w, &err), &err);
    tenrec_config_drop(config);
    assert_status(tenrec_init_rpc(w, &err), &err);
    assert_status(tenrec_shutdown(w, TENREC_GRACEFUL, CLUSTER_LONG_MS, &err), &err);
    tenrec_worker_drop(w);
}

static void a_worker_opens_and_closes_its_exporter(void **state)
{
    char observe[128];

    (void)state;
    snprintf(observe, sizeof observe, "{metrics: %s, metrics_exporter: tray}", path);
    worker_runs(observe);
    tray_holds("open close ");
}

static void no_mistake_stops_a_worker(void **state)
{
    (void)state;
    worker_runs("{metrics: nowhere, metrics_exporter: tray}");
    worker_runs("{metrics: nowhere, metrics_exporter: trya}");
    worker_runs("{metrics: [nowhere]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_address_is_opened_once, tray_make, tray_remove),
        cmocka_unit_test_setup_teardown(a_plugin_can_read_the_metrics_and_refuse_a_batch, tray_make,
                                        tray_remove),
        cmocka_unit_test(an_address_that_is_refused_is_an_error_with_the_exporter),
        cmocka_unit_test_setup_teardown(a_worker_opens_and_closes_its_exporter, tray_make,
                                        tray_remove),
        cmocka_unit_test(no_mistake_stops_a_worker),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
