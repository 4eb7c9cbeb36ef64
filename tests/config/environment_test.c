/* SPDX-License-Identifier: Apache-2.0 */
/* environment_test.c - what variables set, in which order, and which are reported
 * to be of no use. */
#include "sample.h"

#include <tenrec/log.h>
#include <tenrec/plugin.h>

#define TEXT                                                                                       \
    "backend: outer\n"                                                                             \
    "backends:\n"                                                                                  \
    "  my-inner: {plugin: p, options: {transports: [uv, shm, cma], delay: 1s}}\n"                  \
    "  outer: {plugin: q, wraps: my-inner, options: {transports: [uv]}}\n"

/* Lines of the log, joined. */
static char logged[4096];

static void take_line(void *arg, enum tenrec_log_level level, const char *part, const char *text)
{
    size_t n = strlen(logged);
    (void)arg;

    snprintf(logged + n, sizeof logged - n, "%d %s: %s\n", (int)level, part, text);
}

static void begin(void)
{
    clean_environment();
    logged[0] = '\0';
    tenrec_log_set_callback(take_line, NULL);
}

static void end(void)
{
    tenrec_log_set_callback(NULL, NULL);
    clean_environment();
}

/* The values of the entry `i` of the chain under the sample's table. */
static struct shown shown_of(const struct tenrec_config *config, size_t i)
{
    struct shown shown = { "" };
    struct config_layer *layer = NULL;
    tenrec_error err = { 0 };
    size_t n = 0;

    assert_int_equal(config_layers(config, &layer, &n, NULL), TENREC_OK);
    assert_true(i < n);
    if (options_show(&sample, &layer[i], show_line, &shown, &err) != TENREC_OK)
        snprintf(shown.text, sizeof shown.text, "%s", err.text);
    free(layer);
    return shown;
}

TEST_WITH(environment_backend_overrides_the_file, begin, end)
{
    struct tenrec_config *config;
    struct shown shown = { "" };
    tenrec_error err = { 0 };

    setenv("TENREC_BACKEND", "my-inner", 1);
    setenv("TENREC_INIT_METHOD", "tcp://h:1", 1);
    config = config_of(TEXT);
    assert_int_equal(config_show(config, show_line, &shown, NULL), TENREC_OK);
    assert_shown(&shown, "backend = my-inner (environment TENREC_BACKEND)");
    assert_shown(&shown, "init_method = tcp://h:1 (environment TENREC_INIT_METHOD)");
    tenrec_config_drop(config);
    setenv("TENREC_BACKEND", "oter", 1);
    assert_int_equal(tenrec_config_parse(TEXT, "t.yaml", &config, &err), TENREC_ECONFIG);
    assert_string_equal(err.text, "environment TENREC_BACKEND: backend 'oter' is not in 'backends' "
                                  "(did you mean 'outer'?)");
    setenv("TENREC_BACKEND", "", 1); /* as if it were not set */
    config = config_of(TEXT);
    tenrec_config_drop(config);
    assert_string_equal(logged, "");
}

TEST_WITH(environment_worker_keys_override_the_file, begin, end)
{
    struct tenrec_config *config;
    struct shown shown = { "" };
    tenrec_error err = { 0 };

    setenv("TENREC_WORKER__RPC_TIMEOUT", "3s", 1);
    setenv("TENREC_WORKER__NUM_WORKER_THREADS", "2", 1);
    setenv("TENREC_WORKER__DEVICES", "cpu,cuda:0", 1);
    setenv("TENREC_WORKER__DEVICE_MAPS", "{w1: {cuda:0: cuda:1}}", 1);
    config = config_of("worker: {rpc_timeout: 1s, name: w}\n" TEXT);
    assert_int_equal(config_show(config, show_line, &shown, NULL), TENREC_OK);
    assert_shown(&shown, "worker.rpc_timeout = 3s (environment TENREC_WORKER__RPC_TIMEOUT)");
    assert_shown(&shown,
                 "worker.num_worker_threads = 2 (environment TENREC_WORKER__NUM_WORKER_THREADS)");
    assert_shown(&shown, "worker.devices = [cpu, cuda:0] (environment TENREC_WORKER__DEVICES)");
    assert_shown(&shown, "worker.device_maps = {w1: {cuda:0: cuda:1}} (environment "
                         "TENREC_WORKER__DEVICE_MAPS)");
    assert_shown(&shown, "worker.name = w (t.yaml:1:33)");
    /* Code is stronger still. */
    assert_int_equal(tenrec_config_set(config, "worker.rpc_timeout", "4s", NULL), TENREC_OK);
    shown.text[0] = '\0';
    assert_int_equal(config_show(config, show_line, &shown, NULL), TENREC_OK);
    assert_shown(&shown, "worker.rpc_timeout = 4s (code)");
    tenrec_config_drop(config);
    assert_string_equal(logged, "");
    setenv("TENREC_WORKER__RPC_TIMEOUT", "3", 1);
    assert_int_equal(tenrec_config_parse(TEXT, "t.yaml", &config, &err), TENREC_ECONFIG);
    assert_string_equal(err.text,
                        "environment TENREC_WORKER__RPC_TIMEOUT: worker.rpc_timeout: a duration "
                        "needs a unit (ms, s, m, h), found '3'");
}

TEST_WITH(environment_value_that_does_not_fit_names_the_variable, begin, end)
{
    static const char *const cases[][3] = {
        { "TENREC_WORKER__NUM_WORKER_THREADS", "0",
          "worker.num_worker_threads: expected 1 to 4096, found '0'" },
        { "TENREC_WORKER__NAME", "a b",
          "worker.name: 'a b' may hold letters, digits, '_', ':', '-' and {rank} only" },
        { "TENREC_WORKER__DEVICES", "cpu,,cpu",
          "worker.devices: an item is empty or duplicate in 'cpu,,cpu'" },
        { "TENREC_WORKER__DEVICES", "gpu",
          "worker.devices: expected a device such as cpu or cuda:0, found 'gpu'" },
        { "TENREC_WORKER__DEVICE_MAPS", "cpu",
          "worker.device_maps: expected a map such as {worker1: {cuda:0: cuda:1}}" },
        { "TENREC_WORKER__DEVICE_MAPS", "{w: {",
          "not valid YAML: while parsing a flow node, did not find expected node content" },
        { "TENREC_INIT_METHOD", "host",
          "init_method: expected env://, tcp://HOST:PORT, file://PATH or PLUGIN://..., found "
          "'host'" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tenrec_config *config = NULL;
        tenrec_error err = { 0 };
        char expected[400];
        setenv(cases[i][0], cases[i][1], 1);
        snprintf(expected, sizeof expected, "environment %s: %s", cases[i][0], cases[i][2]);
        assert_int_equal(tenrec_config_parse(TEXT, "t.yaml", &config, &err), TENREC_ECONFIG);
        assert_string_equal(err.text, expected);
        unsetenv(cases[i][0]);
    }
}

TEST_WITH(environment_short_names_are_for_the_innermost, begin, end)
{
    struct tenrec_config *config;
    struct shown shown;

    setenv("TENREC_TRANSPORTS", "shm,uv", 1);
    setenv("TENREC_PROGRESS", "busy", 1);
    setenv("TENREC_IFNAME", "eth0", 1);
    config = config_of(TEXT);
    shown = shown_of(config, 1);
    assert_shown(&shown, "backends.my-inner.options.transports = [shm, uv] (environment "
                         "TENREC_TRANSPORTS)");
    assert_shown(&shown, "backends.my-inner.options.progress = busy (environment TENREC_PROGRESS)");
    assert_shown(&shown, "backends.my-inner.options.ifname = eth0 (environment TENREC_IFNAME)");
    assert_shown(&shown, "backends.my-inner.options.delay = 1s (t.yaml:3:70)");
    shown = shown_of(config, 0);
    assert_shown(&shown, "backends.outer.options.transports = [uv] (t.yaml:4:61)");
    assert_shown(&shown, "backends.outer.options.progress = adaptive (default)");
    tenrec_config_drop(config);
}

TEST_WITH(environment_caret_excludes_from_the_list_in_force, begin, end)
{
    static const char *const cases[][2] = {
        { "^shm",
          "backends.my-inner.options.transports = [uv, cma] (environment TENREC_TRANSPORTS)" },
        { "^uv,shm",
          "backends.my-inner.options.transports = [cma] (environment TENREC_TRANSPORTS)" },
        { "^uv,shm,cma",
          "backends.my-inner.options.transports = [] (environment TENREC_TRANSPORTS)" },
    };
    struct tenrec_config *config;
    struct shown shown;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        setenv("TENREC_TRANSPORTS", cases[i][0], 1);
        config = config_of(TEXT);
        shown = shown_of(config, 1);
        assert_shown(&shown, cases[i][1]);
        tenrec_config_drop(config);
    }
    /* From the default where the file says nothing, and from another variable. */
    setenv("TENREC_TRANSPORTS", "^uv", 1);
    config = config_of("backend: a\nbackends: {a: {plugin: p}}\n");
    shown = shown_of(config, 0);
    assert_shown(&shown, "backends.a.options.transports = [] (environment TENREC_TRANSPORTS)");
    tenrec_config_drop(config);
    setenv("TENREC_TRANSPORTS", "cma,shm", 1);
    setenv("TENREC_BACKENDS__MY_INNER__TRANSPORTS", "^cma", 1);
    config = config_of(TEXT);
    shown = shown_of(config, 1);
    assert_shown(&shown, "backends.my-inner.options.transports = [shm] (environment "
                         "TENREC_BACKENDS__MY_INNER__TRANSPORTS)");
    tenrec_config_drop(config);
}

TEST_WITH(environment_caret_of_an_unknown_name_is_refused, begin, end)
{
    struct tenrec_config *config;
    struct shown shown;

    setenv("TENREC_TRANSPORTS", "^smh", 1);
    config = config_of(TEXT);
    shown = shown_of(config, 1);
    assert_string_equal(shown.text,
                        "environment TENREC_TRANSPORTS: backend 'my-inner': option 'transports': "
                        "expected one of shm, uv, cma, found 'smh' (did you mean 'shm'?)");
    setenv("TENREC_TRANSPORTS", "uv,^shm", 1);
    tenrec_config_drop(config);
    config = config_of(TEXT);
    shown = shown_of(config, 1);
    assert_non_null(strstr(shown.text, "found '^shm'"));
    tenrec_config_drop(config);
}

TEST_WITH(environment_options_override_the_file_and_yield_to_code, begin, end)
{
    struct tenrec_config *config;
    struct shown shown;

    setenv("TENREC_BACKENDS__MY_INNER__DELAY", "2s", 1);
    setenv("TENREC_BACKENDS__MY_INNER__DELAYS", "{CALL: 1.5}", 1);
    setenv("TENREC_BACKENDS__MY_INNER__LABELS", "x=1,y=2", 1);
    setenv("TENREC_BACKENDS__MY_INNER__KEEPALIVE", "false", 1);
    setenv("TENREC_BACKENDS__OUTER__PORT", "7", 1);
    setenv("TENREC_PROGRESS", "sleep", 1);
    setenv("TENREC_BACKENDS__MY_INNER__PROGRESS", "busy", 1);
    config = config_of(TEXT);
    shown = shown_of(config, 1);
    assert_shown(&shown, "backends.my-inner.options.delay = 2s (environment "
                         "TENREC_BACKENDS__MY_INNER__DELAY)");
    assert_shown(&shown, "backends.my-inner.options.delays = {CALL: 1500ms} (environment "
                         "TENREC_BACKENDS__MY_INNER__DELAYS)");
    assert_shown(&shown, "backends.my-inner.options.labels = {x: 1, y: 2} (environment "
                         "TENREC_BACKENDS__MY_INNER__LABELS)");
    assert_shown(&shown, "backends.my-inner.options.keepalive = false (environment "
                         "TENREC_BACKENDS__MY_INNER__KEEPALIVE)");
    assert_shown(&shown, "backends.my-inner.options.progress = busy (environment "
                         "TENREC_BACKENDS__MY_INNER__PROGRESS)");
    assert_shown(&shown, "backends.my-inner.options.port = 0 (default)");
    shown = shown_of(config, 0);
    assert_shown(&shown,
                 "backends.outer.options.port = 7 (environment TENREC_BACKENDS__OUTER__PORT)");
    assert_int_equal(tenrec_config_set(config, "backends.my-inner.options.delay", "3s", NULL),
                     TENREC_OK);
    shown = shown_of(config, 1);
    assert_shown(&shown, "backends.my-inner.options.delay = 3s (code)");
    tenrec_config_drop(config);
    assert_string_equal(logged, "");
}

TEST_WITH(environment_option_that_does_not_fit_names_the_variable, begin, end)
{
    static const char *const cases[][3] = {
        { "DELAY", "2", "'delay': a duration needs a unit (ms, s, m, h), found '2'" },
        { "PORT", "x", "'port': expected an integer, found 'x'" },
        { "KEEPALIVE", "1", "'keepalive': expected true or false, found '1'" },
        { "PROGRESS", "bussy",
          "'progress': expected one of busy, adaptive, sleep, found 'bussy' "
          "(did you mean 'busy'?)" },
        { "DELAYS", "CALL", "'delays': expected key=value,... or {key: value}, found 'CALL'" },
        { "DELAYS", "CALL=1,CALL=2", "'delays': an item is empty or duplicate in 'CALL=1,CALL=2'" },
        { NULL, NULL, NULL },
    };

    for (size_t i = 0; cases[i][2]; i++) {
        struct tenrec_config *config;
        struct shown shown;
        char name[64], expected[400];
        snprintf(name, sizeof name, "TENREC_BACKENDS__MY_INNER__%s", cases[i][0]);
        setenv(name, cases[i][1], 1);
        snprintf(expected, sizeof expected, "environment %s: backend 'my-inner': option %s", name,
                 cases[i][2]);
        config = config_of(TEXT);
        shown = shown_of(config, 1);
        assert_string_equal(shown.text, expected);
        tenrec_config_drop(config);
        unsetenv(name);
    }
}

TEST_WITH(environment_unknown_variables_are_warned_about_once, begin, end)
{
    static const char *const known[] = { "CONFIG", "PLUGIN_PATH", "LOG_FILE",   "DLCLOSE",
                                         "RUN_ID", "RANK",        "WORLD_SIZE", "TEST_WRAPPER" };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "TENREC_%s", known[i]);
        setenv(name, "1", 1);
    }
    tenrec_config_drop(config_of(TEXT));
    assert_string_equal(logged, "");
    setenv("TENREC_BACKND", "x", 1);
    setenv("TENREC_WORKER__RCP_TIMEOUT", "1s", 1);
    setenv("TENREC_BACKENDS__MY_INER__DELAY", "1s", 1);
    setenv("TENREC_SOMETHING_ELSE", "1s", 1);
    tenrec_config_drop(config_of(TEXT));
    assert_non_null(strstr(logged, "1 config: environment variable TENREC_BACKND is not known (did "
                                   "you mean 'TENREC_BACKEND'?)\n"));
    assert_non_null(strstr(logged, "TENREC_WORKER__RCP_TIMEOUT is not known (did you mean "
                                   "'TENREC_WORKER__RPC_TIMEOUT'?)\n"));
    assert_non_null(strstr(logged, "TENREC_BACKENDS__MY_INER__DELAY is not known (did you mean "
                                   "'TENREC_BACKENDS__MY_INNER__DELAY'?)\n"));
    assert_non_null(strstr(logged, "TENREC_SOMETHING_ELSE is not known\n"));
    logged[0] = '\0';
    tenrec_config_drop(config_of(TEXT));
    assert_string_equal(logged, "");
}

TEST_WITH(environment_unread_options_are_warned_about, begin, end)
{
    struct tenrec_plugin plain = sample;
    struct tenrec_config *config;
    struct config_layer *layer;
    void *opts;
    size_t n;

    plain.n_options = 1;
    setenv("TENREC_BACKENDS__MY_INNER__KEPALIVE", "false", 1);
    setenv("TENREC_CHANNELS", "basic", 1);
    config = config_of("backend: my-inner\nbackends: {my-inner: {plugin: p}}\n");
    assert_string_equal(logged, ""); /* the plugin may know them */
    assert_int_equal(config_layers(config, &layer, &n, NULL), TENREC_OK);
    assert_int_equal(options_make(&plain, &layer[0], &opts, NULL), TENREC_OK);
    assert_string_equal(
        logged,
        "1 config: environment variable TENREC_BACKENDS__MY_INNER__KEPALIVE is not used: "
        "backend 'my-inner' has no such option (did you mean "
        "'TENREC_BACKENDS__MY_INNER__KEEPALIVE'?)\n"
        "1 config: environment variable TENREC_CHANNELS is not used: backend 'my-inner' has "
        "no option 'channels'\n");
    options_drop(opts);
    free(layer);
    tenrec_config_drop(config);
}

TEST_WITH(environment_config_names_the_file, begin, end)
{
    char path[] = "/tmp/tenrec-config-XXXXXX", expected[128];
    int fd = mkstemp(path);
    struct tenrec_config *config = NULL;
    struct shown shown = { "" };
    tenrec_error err = { 0 };

    assert_true(fd >= 0);
    assert_true(write(fd, TEXT, strlen(TEXT)) > 0);
    close(fd);
    setenv("TENREC_CONFIG", path, 1);
    assert_int_equal(tenrec_config_load(NULL, &config, &err), TENREC_OK);
    assert_int_equal(config_show(config, show_line, &shown, NULL), TENREC_OK);
    snprintf(expected, sizeof expected, "backend = outer (%s:1:10)", path);
    assert_shown(&shown, expected);
    tenrec_config_drop(config);
    unlink(path);
    assert_int_equal(tenrec_config_load(NULL, &config, &err), TENREC_EOS);
    snprintf(
        expected, sizeof expected,
        "environment TENREC_CONFIG: cannot read the configuration '%s': No such file or directory",
        path);
    assert_string_equal(err.text, expected);
}
