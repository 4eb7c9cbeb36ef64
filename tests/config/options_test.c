/* SPDX-License-Identifier: Apache-2.0 */
/* options_test.c - every option type through a table, and tables that are wrong. */
#include "core/plugin/plugin.h"
#include "sample.h"

/* Options written under `backends.flaky.options` of a file. */
static tenrec_status make_from(const char *options, struct tenrec_config **ret_config,
                               struct sample **ret, tenrec_error *err)
{
    char text[1024];
    struct config_layer *layer = NULL;
    void *opts = NULL;
    size_t n;
    tenrec_status st;

    snprintf(text, sizeof text,
             "backend: flaky\nbackends:\n  flaky:\n    plugin: p\n    options:\n      %s\n",
             options);
    *ret_config = NULL;
    st = tenrec_config_parse(text, "t.yaml", ret_config, err);
    if (st == TENREC_OK)
        st = config_layers(*ret_config, &layer, &n, err);
    if (st == TENREC_OK)
        st = options_make(&sample, &layer[0], &opts, err);
    free(layer);
    *ret = opts;
    return st;
}

TEST(options_are_the_defaults_when_nothing_is_written)
{
    struct sample *s;
    tenrec_error err = { 0 };
    void *opts = NULL;

    if (options_make(&sample, NULL, &opts, &err) != TENREC_OK)
        fail_msg("%s", err.text);
    s = opts;
    assert_true(s->keepalive);
    assert_int_equal(s->port, 0);
    assert_true(s->factor == 1.5);
    assert_int_equal(s->delay, 5);
    assert_int_equal(s->limit, 65536);
    assert_string_equal(s->progress, "adaptive");
    assert_null(s->ifname);
    assert_string_equal(s->password, "");
    assert_int_equal(s->transports.n, 1);
    assert_string_equal(s->transports.v[0].s, "uv");
    assert_int_equal(s->ports.n, 0);
    assert_int_equal(s->delays.n, 0);
    assert_string_equal(s->labels.v[0].key, "a");
    assert_string_equal(s->labels.v[0].value.s, "b");
    options_drop(opts);
    options_drop(NULL);
}

TEST(options_read_every_type)
{
    struct tenrec_config *config;
    struct sample *s;
    tenrec_error err = { 0 };

    if (make_from("{keepalive: false, port: 0x50, factor: 2, delay: none, limit: \"1MiB\", "
                  "progress: busy, ifname: '123', password: s3, transports: [shm, uv], "
                  "ports: [1, 9], delays: {SCRIPT_CALL: 1.5, CALL: 250ms}, labels: {}}",
                  &config, &s, &err) == TENREC_OK)
        fail_msg("a delay without end was taken");
    assert_string_equal(err.text, "t.yaml:6:56: backend 'flaky': option 'delay': expected 0s to "
                                  "1h, found 'none'");
    tenrec_config_drop(config);
    if (make_from("{keepalive: false, port: 0x50, factor: 2, delay: 1m, limit: \"1MiB\", "
                  "progress: busy, ifname: '123', password: s3, transports: [shm, uv], "
                  "ports: [1, 9], delays: {SCRIPT_CALL: 1.5, CALL: none}, labels: {}}",
                  &config, &s, &err) != TENREC_OK)
        fail_msg("%s", err.text);
    assert_false(s->keepalive);
    assert_int_equal(s->port, 80);
    assert_true(s->factor == 2.0);
    assert_int_equal(s->delay, 60000);
    assert_int_equal(s->limit, 1 << 20);
    assert_string_equal(s->progress, "busy");
    assert_string_equal(s->ifname, "123");
    assert_int_equal(s->transports.n, 2);
    assert_string_equal(s->transports.v[0].s, "shm");
    assert_int_equal(s->ports.v[1].i, 9);
    assert_int_equal(s->delays.n, 2);
    assert_string_equal(s->delays.v[0].key, "SCRIPT_CALL");
    assert_int_equal(s->delays.v[0].value.ms, 1500);
    assert_true(s->delays.v[1].value.ms == TENREC_FOREVER);
    assert_int_equal(s->labels.n, 0);
    tenrec_config_drop(config); /* the options stand on their own */
    assert_string_equal(s->transports.v[1].s, "uv");
    options_drop(s);
}

TEST(options_refuse_with_place_and_reason)
{
#define O "backend 'flaky': option "
    static const char *const cases[][2] = {
        { "dealy: 5ms",
          "t.yaml:6:7: backend 'flaky': has no option 'dealy' (did you mean 'delay'?)" },
        { "zzzzzz: 1",
          "t.yaml:6:7: backend 'flaky': has no option 'zzzzzz' (known: keepalive, port, factor, "
          "delay, limit, progress, ifname, password, transports, ports, delays, labels, rules)" },
        { "keepalive: yes", "t.yaml:6:18: " O "'keepalive': expected true or false, found 'yes'" },
        { "keepalive: 'true'",
          "t.yaml:6:18: " O "'keepalive': expected true or false, found the text \"true\"" },
        { "keepalive:", "t.yaml:6:17: " O "'keepalive': expected true or false, found nothing" },
        { "port: ten", "t.yaml:6:13: " O "'port': expected an integer, found 'ten'" },
        { "port: '10'", "t.yaml:6:13: " O "'port': expected an integer, found the text \"10\"" },
        { "port: -1", "t.yaml:6:13: " O "'port': expected 0 to 65535, found '-1'" },
        { "port: 65536", "t.yaml:6:13: " O "'port': expected 0 to 65535, found '65536'" },
        { "port: 99999999999999999999",
          "t.yaml:6:13: " O "'port': integer '99999999999999999999' does not fit in 64 bits" },
        { "port: [1]", "t.yaml:6:13: " O "'port': expected an integer, found a list" },
        { "port: {a: 1}", "t.yaml:6:13: " O "'port': expected an integer, found a map" },
        { "factor: many", "t.yaml:6:15: " O "'factor': expected a number, found 'many'" },
        { "factor: 10.5", "t.yaml:6:15: " O "'factor': expected 0 to 10, found '10.5'" },
        { "delay: 60",
          "t.yaml:6:14: " O "'delay': a duration needs a unit (ms, s, m, h), found '60'" },
        { "delay: -1s", "t.yaml:6:14: " O "'delay': a duration cannot be negative, found '-1s' "
                        "('none' means for ever)" },
        { "delay: 2h", "t.yaml:6:14: " O "'delay': expected 0s to 1h, found '2h'" },
        { "limit: 100", "t.yaml:6:14: " O "'limit': expected at least 1KiB, found '100'" },
        { "limit: 64K",
          "t.yaml:6:14: " O
          "'limit': a size has the unit KiB, MiB, GiB, kB, MB, GB or none, found '64K'" },
        { "progress: bussy", "t.yaml:6:17: " O "'progress': expected one of busy, adaptive, sleep, "
                             "found 'bussy' (did you mean 'busy'?)" },
        { "ifname: ~", "t.yaml:6:15: " O "'ifname': expected text, found nothing" },
        { "ifname: [a]", "t.yaml:6:15: " O "'ifname': expected text, found a list" },
        { "password: [s3cret]",
          "t.yaml:6:17: " O "'password': invalid value (not shown: it is a secret)" },
        { "transports: uv",
          "t.yaml:6:19: " O "'transports': expected a list such as [a, b], found 'uv'" },
        { "transports: [uv, smh]", "t.yaml:6:24: " O "'transports': expected one of shm, uv, cma, "
                                   "found 'smh' (did you mean 'shm'?)" },
        { "transports: [[uv]]", "t.yaml:6:20: " O "'transports': expected text, found a list" },
        { "ports: [1, 10]", "t.yaml:6:18: " O "'ports': expected 1 to 9, found '10'" },
        { "delays: [1]",
          "t.yaml:6:15: " O "'delays': expected a map such as {key: value}, found a list" },
        { "delays: {CAL: 1}",
          "t.yaml:6:16: " O "'delays': expected one of CALL, SCRIPT_CALL, found "
          "'CAL' (did you mean 'CALL'?)" },
        { "delays: {CALL: x}",
          "t.yaml:6:22: " O "'delays', key 'CALL': expected a duration such as "
          "250ms, 1.5s, 2m, 1h or none, found 'x'" },
        { "labels: {a: {b: c}}",
          "t.yaml:6:19: " O "'labels', key 'a': expected text, found a map" },
        { "ifname: tcp://me:hush@host\n      port: tcp://me:hush@host",
          "t.yaml:7:13: " O "'port': expected an integer, found 'tcp://me:***@host'" },
        { "transports: [uv, 'tcp://me:hush@host']",
          "t.yaml:6:19: " O "'transports': invalid value (not shown: it may hold a password)" },
        { "delays: {CALL: 'tcp://me:hush@host'}",
          "t.yaml:6:15: " O "'delays': invalid value (not shown: it may hold a password)" },
        { "delays: {'tcp://me:hush@host': 1s}",
          "t.yaml:6:15: " O "'delays': invalid value (not shown: it may hold a password)" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tenrec_config *config;
        struct sample *s = NULL;
        tenrec_error err = { 0 };
        tenrec_status st = make_from(cases[i][0], &config, &s, &err);
        assert_string_equal(err.text, cases[i][1]);
        assert_int_equal(st, TENREC_ECONFIG);
        assert_null(s);
        tenrec_config_drop(config);
    }
}

TEST(options_refuse_defaults_that_do_not_parse)
{
    static const struct {
        struct tenrec_option option;
        const char *text;
    } cases[] = {
        { { "x", TENREC_OPT_INT, .offset = AT(port), .def = "many" },
          "plugin 'sample': the default 'many' does not parse: backend 'sample': option 'x': "
          "expected an integer, found 'many'" },
        { { "x", TENREC_OPT_LIST, TENREC_OPT_STRING, .offset = AT(transports), .def = "[uv" },
          "plugin 'sample': the default '[uv' does not parse: not valid YAML: while parsing a "
          "flow sequence, did not find expected ',' or ']'" },
        { { "x", TENREC_OPT_STRING, .offset = AT(progress), .def = "a", .choices = "b|c" },
          "plugin 'sample': the default 'a' does not parse: backend 'sample': option 'x': "
          "expected one of b, c, found 'a'" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tenrec_plugin wrong = sample;
        void *opts = NULL;
        tenrec_error err = { 0 };
        wrong.options = &cases[i].option;
        wrong.n_options = 1;
        assert_int_equal(options_make(&wrong, NULL, &opts, &err), TENREC_EPLUGIN);
        assert_string_equal(err.text, cases[i].text);
        assert_int_equal(err.code, TENREC_EPLUGIN);
        assert_null(opts);
    }
}

TEST(options_tables_are_checked_with_the_plugin)
{
    static const struct tenrec_option inner = { "y", TENREC_OPT_RECORDS, .record = &sample_rule,
                                                .help = "" };
    static const struct tenrec_option_record nested = { &inner, 1, sizeof inner,
                                                        sizeof(struct tenrec_option_records), 0 };
    static const struct tenrec_option_record short_one = { sample_rule_options, 1,
                                                           sizeof sample_rule_options[0], 4, 0 };
    static const struct {
        struct tenrec_option option;
        const char *text;
    } cases[] = {
        { { "x", (enum tenrec_option_type)77, .offset = 0 }, "option 'x' has the unknown type 77" },
        { { "x", (enum tenrec_option_type)0, .offset = 0 }, "option 'x' has the unknown type 0" },
        { { "x", TENREC_OPT_LIST, TENREC_OPT_MAP, .offset = 0 },
          "option 'x' has items of the type 8, expected a plain type" },
        { { "x", TENREC_OPT_LIST, .offset = 0 },
          "option 'x' has items of the type 0, expected a plain type" },
        { { "x", TENREC_OPT_RECORDS, .offset = 0 }, "option 'x' has no record" },
        { { "x", TENREC_OPT_RECORDS, .offset = 0, .record = &nested },
          "record of option 'x': option 'y': nested records are not supported" },
        { { "x", TENREC_OPT_RECORDS, .offset = 0, .record = &short_one },
          "record of option 'x': option 'do' is at bytes 0 to 8 of an options struct of 4 bytes" },
        { { "x", TENREC_OPT_INT, .offset = sizeof(struct sample) - 4 }, NULL },
        { { "x", TENREC_OPT_INT, .offset = UINT32_MAX }, NULL },
        { { "x", TENREC_OPT_INT, .offset = 4 }, "option 'x' is at the unaligned offset 4" },
        { { NULL, TENREC_OPT_INT, .offset = 0 },
          "option 0 has the key '', expected up to 63 of [a-z0-9_]" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tenrec_plugin wrong = sample;
        struct tenrec_option option = cases[i].option;
        char outside[120];
        tenrec_error err = { 0 };
        option.help = "";
        wrong.version = wrong.summary = "";
        wrong.options = &option;
        wrong.n_options = 1;
        snprintf(outside, sizeof outside,
                 "option 'x' is at bytes %u to %zu of an options struct of %zu bytes",
                 option.offset, (size_t)option.offset + sizeof(int64_t), sizeof(struct sample));
        assert_int_equal(plugin_validate_check(&wrong, PLUGIN_KIND_ANY, &err), TENREC_EPLUGIN);
        assert_string_equal(err.text, cases[i].text ? cases[i].text : outside);
        assert_int_equal(err.code, TENREC_EPLUGIN);
    }
}

TEST(options_read_the_table_of_a_newer_plugin)
{
    struct newer {
        struct tenrec_option option;
        const void *more[3];
    };
    static const struct newer options[] = {
        { { "port", TENREC_OPT_INT, .offset = AT(port), .def = "7" }, { 0 } },
        { { "factor", TENREC_OPT_DOUBLE, .offset = AT(factor), .def = "2" }, { 0 } },
    };
    struct tenrec_plugin newer = sample;
    struct sample *s;
    void *opts = NULL;

    newer.options = &options[0].option;
    newer.n_options = 2;
    newer.option_size = sizeof options[0];
    assert_int_equal(options_make(&newer, NULL, &opts, NULL), TENREC_OK);
    s = opts;
    assert_int_equal(s->port, 7);
    assert_true(s->factor == 2.0);
    options_drop(opts);
}

TEST(options_read_the_table_of_an_older_plugin)
{
    /* What an older header had: an option ends before its record. */
    enum { OLD = offsetof(struct tenrec_option, record) };
    static const struct tenrec_option port = { "port", TENREC_OPT_INT, .offset = AT(port),
                                               .def = "7" };
    static const struct tenrec_option factor = { "factor", TENREC_OPT_DOUBLE, .offset = AT(factor),
                                                 .def = "2" };
    _Alignas(max_align_t) char table[2 * OLD];
    struct tenrec_plugin older = sample;
    struct sample *s;
    tenrec_error err = { 0 };
    void *opts = NULL;

    memcpy(table, &port, OLD);
    memcpy(table + OLD, &factor, OLD);
    older.options = (const struct tenrec_option *)(const void *)table;
    older.n_options = 2;
    older.option_size = OLD;
    assert_int_equal(options_make(&older, NULL, &opts, NULL), TENREC_OK);
    s = opts;
    assert_int_equal(s->port, 7);
    assert_true(s->factor == 2.0);
    options_drop(opts);
    older.version = older.summary = "";
    older.option_size = OLD - 1;
    assert_int_equal(plugin_validate_check(&older, PLUGIN_KIND_ANY, &err), TENREC_EABI);
}

TEST(options_of_a_plugin_without_any_are_made)
{
    struct tenrec_plugin none = sample;
    void *opts = NULL;

    none.options = NULL;
    none.n_options = none.option_size = none.options_size = 0;
    assert_int_equal(options_make(&none, NULL, &opts, NULL), TENREC_OK);
    assert_non_null(opts);
    options_drop(opts);
}

TEST(options_print_as_a_user_would_write)
{
    static const char *const expected[][2] = {
        { "keepalive", "false" },
        { "port", "80" },
        { "factor", "2.5" },
        { "delay", "1500ms" },
        { "limit", "1MiB" },
        { "progress", "busy" },
        { "ifname", "tcp://me:***@host" },
        { "password", "***" },
        { "transports", "[shm, uv]" },
        { "ports", "[1, 9]" },
        { "delays", "{SCRIPT_CALL: 1500ms}" },
        { "labels", "{a: \"b c\", \"d,\": \"\\\"\", e: \"\"}" },
        { "rules", "[{do: drop}, {chance: 0.5, on: [CALL], weights: {a: 1}}]" },
    };
    struct tenrec_config *config;
    struct sample *s;
    tenrec_error err = { 0 };

    if (make_from("{keepalive: false, port: 80, factor: 2.5, delay: 1.5s, limit: 1MiB, "
                  "progress: busy, ifname: 'tcp://me:a@b/c@host', password: s3, "
                  "transports: [shm, uv], ports: [1, 9], delays: {SCRIPT_CALL: 1.5}, "
                  "labels: {a: b c, 'd,': '\"', e: ''}, "
                  "rules: [{do: drop, chance: 1}, {chance: .5, on: [CALL], weights: {a: 1}}]}",
                  &config, &s, &err) != TENREC_OK)
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < sample.n_options; i++) {
        struct tenrec_option opt = options_at(&sample, i);
        char *text = options_print(&opt, s);
        assert_string_equal(opt.key, expected[i][0]);
        assert_string_equal(text, expected[i][1]);
        free(text);
    }
    options_drop(s);
    tenrec_config_drop(config);
}

TEST(options_type_is_named_for_people)
{
    char buf[OPTIONS_TYPE_MAX];
    struct tenrec_option strange = { .type = (enum tenrec_option_type)99 };

    assert_string_equal(options_type(&sample_options[0], buf), "boolean");
    assert_string_equal(options_type(&sample_options[3], buf), "duration");
    assert_string_equal(options_type(&sample_options[8], buf), "list of strings");
    assert_string_equal(options_type(&sample_options[10], buf), "map to durations");
    assert_string_equal(options_type(&sample_options[12], buf), "list of maps");
    assert_string_equal(options_type(&strange, buf), "unknown");
}

int main(void)
{
    return testing_run(clean_environment, NULL);
}
