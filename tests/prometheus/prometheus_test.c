/* SPDX-License-Identifier: Apache-2.0 */
/* prometheus_test.c - addresses, the text of a process, and the joining of texts. */
#include "prometheus.h"

#include "../testing.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void addresses_are_numbers_or_paths(void **state)
{
    static const struct {
        const char *text;
        int family;
        bool beyond;
    } good[] = {
        { "127.0.0.1:9464", AF_INET, false }, { "localhost:0", AF_INET, false },
        { "0.0.0.0:9464", AF_INET, true },    { "[::1]:9464", AF_INET6, false },
        { "[::]:65535", AF_INET6, true },     { "unix:/run/x.sock", AF_UNIX, false },
    };
    struct address a;
    tenrec_error err;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_status(address_parse(good[i].text, &a, &err), &err);
        assert_int_equal(a.u.any.sa_family, good[i].family);
        assert_int_equal(a.beyond, good[i].beyond);
    }
}

static void other_addresses_are_refused(void **state)
{
    static const char *const bad[] = { "",
                                       "9464",
                                       "127.0.0.1",
                                       ":9464",
                                       "host:9464",
                                       "127.0.0.1:",
                                       "127.0.0.1:65536",
                                       "127.0.0.1:-1",
                                       "127.0.0.1:9464x",
                                       "[::1:9464",
                                       "unix:relative",
                                       "unix:",
                                       "300.0.0.1:1" };
    char path[200];
    struct address a;
    tenrec_error err;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (address_parse(bad[i], &a, &err) != TENREC_EINVAL)
            fail_msg("'%s' is an address", bad[i]);
    snprintf(path, sizeof path, "unix:/%0150d", 0);
    assert_int_equal(address_parse(path, &a, &err), TENREC_EINVAL);
}

static char *merge_to_text(const char *const *texts, size_t n, int *ret)
{
    struct merge_text text[4];
    char *out = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&out, &len);

    assert_non_null(to);
    for (size_t i = 0; i < n; i++)
        text[i] = (struct merge_text){ (char *)(uintptr_t)texts[i], strlen(texts[i]) };
    *ret = merge_texts(text, n, to);
    fclose(to);
    return out;
}

static void the_lines_of_a_metric_come_together(void **state)
{
    static const char *const texts[] = {
        "# HELP a A.\n# TYPE a counter\na{p=\"1\"} 1\n# HELP b B.\n# TYPE b gauge\nb{p=\"1\"} 2\n",
        "# HELP b B.\n# TYPE b gauge\nb{p=\"2\"} 3\n# HELP c C.\n# TYPE c gauge\nc 4\n",
        "# HELP a A.\n# TYPE a counter\na{p=\"3\"} 5\na{p=\"4\"} 6\n",
    };
    int left_out;
    char *got = merge_to_text(texts, 3, &left_out);

    (void)state;
    assert_int_equal(left_out, 0);
    assert_string_equal(got,
                        "# HELP a A.\n# TYPE a counter\na{p=\"1\"} 1\na{p=\"3\"} 5\na{p=\"4\"} 6\n"
                        "# HELP b B.\n# TYPE b gauge\nb{p=\"1\"} 2\nb{p=\"2\"} 3\n"
                        "# HELP c C.\n# TYPE c gauge\nc 4\n");
    free(got);
}

static void texts_of_another_form_are_left_out(void **state)
{
    static const char *const texts[] = { "a 1\n", "", "# HELP a A.\na 1\n", "# HELP b B.\nb 1" };
    int left_out;
    char *got = merge_to_text(texts, 4, &left_out);

    (void)state;
    assert_int_equal(left_out, 3);
    assert_string_equal(got, "# HELP a A.\na 1\n");
    free(got);
}

/* Of a neighbour of another version: as OpenMetrics, whose texts end so. */
static void comments_behind_a_metric_are_kept_within_the_text(void **state)
{
    static const char whole[] = "# HELP a A.\na 1\n# EOF\n";
    char *exact = malloc(sizeof whole - 1), *out = NULL;
    struct merge_text text = { exact, sizeof whole - 1 };
    size_t len = 0;
    FILE *to = open_memstream(&out, &len);

    (void)state;
    assert_true(exact && to);
    memcpy(exact, whole, sizeof whole - 1);
    assert_int_equal(merge_texts(&text, 1, to), 0);
    fclose(to);
    assert_string_equal(out, whole);
    free(out);
    free(exact);
}

/* ---- the text of a snapshot ------------------------------------------------ */

static const struct tenrec_series two_series[] = {
    { .worker = "w\"0",
      .function = "add",
      .peer = "w1",
      .n = 3,
      .sum_ns = 5000,
      .bucket = { 1, 2 },
      .kind = TENREC_SPAN_CLIENT },
    { .worker = "w1",
      .function = "add",
      .n = 1,
      .sum_ns = 9,
      .bucket = { [TENREC_DURATION_BUCKETS - 1] = 1 },
      .kind = TENREC_SPAN_SERVER,
      .status = TENREC_ETIMEDOUT },
};
static const struct tenrec_reading four_readings[] = {
    { "w0", "calls.made", 7 },
    { "w1", "calls.made", 8 },
    { "w0", "backend.tcp.pipes", 2 },
    { "w0", "memory.shared_bytes", 4096 },
};
static struct tenrec_snapshot a_snapshot = { two_series, 2, four_readings, 4, 5 };

static tenrec_status host_snapshot(struct tenrec_observer *self, struct tenrec_snapshot **ret,
                                   tenrec_error *err)
{
    (void)self, (void)err;
    *ret = &a_snapshot;
    return TENREC_OK;
}

static void host_snapshot_free(struct tenrec_observer *self, struct tenrec_snapshot *s)
{
    (void)self;
    assert_ptr_equal(s, &a_snapshot);
}

static char folder[] = "/tmp/prometheus-XXXXXX";

static tenrec_status host_private_folder(struct tenrec_observer *self,
                                         char ret[TENREC_PRIVATE_FOLDER_MAX], tenrec_error *err)
{
    (void)self, (void)err;
    snprintf(ret, TENREC_PRIVATE_FOLDER_MAX, "%s", folder);
    return TENREC_OK;
}

static void host_log(const void *self, enum tenrec_log_level level, const char *format, ...)
{
    (void)self, (void)level, (void)format;
}

static const struct tenrec_observer_host host = {
    .size = sizeof host,
    .version = "1.2.3",
    .log = host_log,
    .private_folder = host_private_folder,
    .snapshot = host_snapshot,
    .snapshot_free = host_snapshot_free,
};

static void the_text_has_the_names_of_opentelemetry(void **state)
{
    static const char *const lines[] = {
        ("# TYPE rpc_client_call_duration_seconds histogram\n"
         "rpc_client_call_duration_seconds_bucket{tenrec_worker_name=\"w\\\"0\",process_pid="),
        "rpc_method=\"add\",server_address=\"w1\",le=\"1e-06\"} 1\n",
        "rpc_method=\"add\",server_address=\"w1\",le=\"+Inf\"} 3\n",
        "rpc_method=\"add\",server_address=\"w1\"} 0.000005000\n",
        "rpc_method=\"add\",error_type=\"ETIMEDOUT\",le=\"+Inf\"} 1\n",
        "# TYPE tenrec_calls_made_total counter\ntenrec_calls_made_total{process_pid=",
        "tenrec_worker_name=\"w1\"} 8\n",
        "backend=\"tcp\",key=\"pipes\"} 2\n",
        "version=\"1.2.3\"} 1\n",
    };
    const struct text_options fine = { .bucket_step = 1, .server_address = true };
    struct tenrec_observer self = { .host = &host };
    char *text;
    size_t len;
    tenrec_error err;

    (void)state;
    assert_status(text_make(&self, &fine, &text, &len, &err), &err);
    assert_int_equal(strlen(text), len);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (!strstr(text, lines[i]))
            fail_msg("'%s' is missing in:\n%s", lines[i], text);
    assert_null(strstr(text, "tenrec_group_members{"));
    free(text);
}

enum { WORKERS = 64, FUNCTIONS = 10 };

static struct tenrec_series many[(WORKERS + 1) * FUNCTIONS];
static struct tenrec_snapshot many_snapshot = { .series = many };

static tenrec_status host_many(struct tenrec_observer *self, struct tenrec_snapshot **ret,
                               tenrec_error *err)
{
    (void)self, (void)err;
    *ret = &many_snapshot;
    return TENREC_OK;
}

static void host_many_free(struct tenrec_observer *self, struct tenrec_snapshot *s)
{
    (void)self, (void)s;
}

/* Each function calls all workers, and is called. */
static void fill_many(char name[][8])
{
    size_t n = 0;

    for (int i = 0; i < WORKERS; i++)
        snprintf(name[i], 8, "w%d", i);
    for (int f = 0; f < FUNCTIONS; f++)
        snprintf(name[WORKERS + f], 8, "f%d", f);
    for (int f = 0; f < FUNCTIONS; f++) {
        struct tenrec_series s = { .worker = name[0], .function = name[WORKERS + f], .n = 2 };

        s.kind = TENREC_SPAN_CLIENT;
        s.bucket[3] = s.bucket[4] = 1;
        for (int i = 0; i < WORKERS; i++) {
            s.peer = name[i];
            many[n++] = s;
        }
        s.kind = TENREC_SPAN_SERVER;
        s.peer = NULL;
        many[n++] = s;
    }
    many_snapshot.n_series = n;
}

static size_t count_lines(const struct text_options *o, char **ret)
{
    struct tenrec_observer_host with = host;
    struct tenrec_observer self = { .host = &with };
    size_t n = 0, len;
    tenrec_error err;

    with.snapshot = host_many;
    with.snapshot_free = host_many_free;
    assert_status(text_make(&self, o, ret, &len, &err), &err);
    for (const char *at = *ret; (at = strchr(at, '\n')) != NULL; at++)
        n++;
    return n;
}

/* The defaults of the option table, which the core fills. */
static struct text_options default_options(void)
{
    struct text_options o = { 0 };

    for (uint32_t i = 0; i < tenrec_plugin.n_options; i++) {
        const struct tenrec_option *one = &tenrec_plugin.options[i];

        if (strcmp(one->key, "server_address") == 0)
            o.server_address = strcmp(one->def, "true") == 0;
        else if (strcmp(one->key, "bucket_step") == 0)
            o.bucket_step = atoi(one->def);
    }
    return o;
}

static void ten_functions_that_call_64_workers_are_less_than_2000_lines(void **state)
{
    const struct text_options few = default_options();
    static char name[WORKERS + FUNCTIONS][8];
    char *text;

    (void)state;
    fill_many(name);
    assert_in_range(count_lines(&few, &text), 20 * 15, 1999);
    assert_non_null(strstr(text, "rpc_method=\"f9\",le=\"4e-06\"} 0\n"));
    assert_non_null(strstr(text, "rpc_method=\"f9\",le=\"1.6e-05\"} 128\n"));
    assert_non_null(strstr(text, "rpc_method=\"f9\",le=\"16.777216\"} 128\n"));
    assert_non_null(strstr(text, "rpc_method=\"f9\"} 128\n"));
    assert_null(strstr(text, "server_address"));
    free(text);
}

static void the_called_worker_and_all_buckets_are_options(void **state)
{
    const struct text_options fine = { .bucket_step = 1, .server_address = true };
    static char name[WORKERS + FUNCTIONS][8];
    char *text;

    (void)state;
    fill_many(name);
    assert_in_range(count_lines(&fine, &text), 650 * 28, 650 * 28 + 200);
    assert_non_null(strstr(text, "rpc_method=\"f9\",server_address=\"w63\",le=\"8e-06\"} 1\n"));
    free(text);
}

/* A program that reads its metrics at once finds the socket. */
static void the_first_process_serves_once_it_is_open(void **state)
{
    const struct {
        uint64_t timeout_ms;
        struct text_options text;
    } options = { 1000, { 2, false } };
    char address[64];
    const struct tenrec_observer_init in = { sizeof in, 0, address, &options };
    struct tenrec_observer self = { .host = &host };
    struct stat sb;
    tenrec_error err;
    char *made;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(address, sizeof address, "unix:%s/at", folder);
    assert_status(tenrec_init_observer(&in, &self, &err), &err);
    assert_int_equal(stat(strchr(address, '/'), &sb), 0);
    assert_true(S_ISSOCK(sb.st_mode));
    self.ops->close(&self);
    assert_true(asprintf(&made, "rm -r %s", folder) > 0);
    assert_int_equal(system(made), 0);
    free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_numbers_or_paths),
        cmocka_unit_test(other_addresses_are_refused),
        cmocka_unit_test(the_lines_of_a_metric_come_together),
        cmocka_unit_test(texts_of_another_form_are_left_out),
        cmocka_unit_test(comments_behind_a_metric_are_kept_within_the_text),
        cmocka_unit_test(the_text_has_the_names_of_opentelemetry),
        cmocka_unit_test(ten_functions_that_call_64_workers_are_less_than_2000_lines),
        cmocka_unit_test(the_called_worker_and_all_buckets_are_options),
        cmocka_unit_test(the_first_process_serves_once_it_is_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
