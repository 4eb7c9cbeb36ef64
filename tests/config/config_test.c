/* SPDX-License-Identifier: Apache-2.0 */
/* config_test.c - whole configurations: what may stand in them, what is shown. */
#include "core/config/settings.h"

#include "sample.h"

#include "../testing.h"

#define BACKENDS "backends: {a: {plugin: p}}\n"
#define USE "backend: a\n" BACKENDS

TEST(config_is_refused_with_the_position)
{
    static const char *const cases[][2] = {
        { "wroker: {}", "t.yaml:1:1: unknown key 'wroker' (did you mean 'worker'?)" },
        { "[a]", "t.yaml:1:1: expected a map with the keys worker, security, observe, init_method, "
                 "backend, backends, stores, observers, found a list" },
        { "text",
          "t.yaml:1:1: expected a map with the keys worker, security, observe, init_method, "
          "backend, backends, stores, observers, found 'text'" },
        { "worker: [a]", "t.yaml:1:9: 'worker': expected a map, found a list" },
        { "worker:", "t.yaml:1:8: 'worker': expected a map, found nothing" },
        { "backend: [a]",
          "t.yaml:1:10: 'backend': expected the name of an entry of 'backends', found a list" },
        { "backend: ''", "t.yaml:1:10: 'backend': expected the name of an entry of 'backends', "
                         "found the text \"\"" },
        { "backend: tensorpip",
          "t.yaml:1:10: backend 'tensorpip' is not in 'backends' (did you mean 'tensorpipe'?)" },
        { BACKENDS, "t.yaml: 'backend' is missing and its default 'tensorpipe' is not in "
                    "'backends': say which entry to use" },
        { "backends: [a]", "t.yaml:1:11: 'backends': expected a map, found a list" },
        { "backend: a\nbackends: {a: p}",
          "t.yaml:2:15: backend 'a': expected a map such as {plugin: NAME}, found 'p'" },
        { "backend: a\nbackends: {a: {plugn: p}}",
          "t.yaml:2:16: backend 'a': unknown key 'plugn' (did you mean 'plugin'?)" },
        { "backend: a\nbackends: {a: {}}",
          "t.yaml:2:12: backend 'a': 'plugin' is missing: name the plugin" },
        { "backend: a\nbackends: {a: {plugin: }}", "t.yaml:2:24: backend 'a': 'plugin': expected "
                                                   "the name or path of a plugin, found nothing" },
        { "backend: a\nbackends: {a: {plugin: p, options: [x]}}",
          "t.yaml:2:36: backend 'a': 'options': expected a map, found a list" },
        { "backend: a\nbackends: {a.b: {plugin: p}}",
          "t.yaml:2:12: 'a.b' cannot be the name of a backend: 1 to 63 letters, digits, '_' and "
          "'-' were expected" },
        { "backend: a\nbackends: {a: {plugin: p, wraps: bb}, b: {plugin: p}}",
          "t.yaml:2:34: backend 'a': wraps 'bb', which is not in 'backends' (did you mean 'b'?)" },
        { "backend: a\nbackends: {a: {plugin: p, wraps: a}}",
          "t.yaml:2:34: backend 'a': wraps itself: a -> a" },
        { "backend: c\nbackends:\n  a: {plugin: p, wraps: b}\n  b: {plugin: p, wraps: a}\n"
          "  c: {plugin: p}",
          "t.yaml:3:25: backend 'a': wraps itself: a -> b -> a" },
        { "backend: c\nbackends:\n  c: {plugin: p, wraps: a}\n  a: {plugin: p, wraps: b}\n"
          "  b: {plugin: p, wraps: a}",
          "t.yaml:4:25: backend 'a': wraps itself: a -> b -> a" },
        { "backend: a-b\nbackends:\n  a-b: {plugin: p}\n  A_b: {plugin: p}",
          "t.yaml:4:3: backends 'a-b' and 'A_b' have the same variables "
          "(TENREC_BACKENDS__A_B__...); "
          "rename one" },
        { "worker: {nam: x}", "t.yaml:1:10: worker: has no key 'nam' (did you mean 'name'?)" },
        { "worker: {device_map: {}}",
          "t.yaml:1:10: worker: has no key 'device_map' (did you mean 'device_maps'?)" },
        { "worker: {name: [x]}", "t.yaml:1:16: worker.name: expected text, found a list" },
        { "worker: {name: a b}", "t.yaml:1:16: worker.name: 'a b' may hold letters, digits, '_', "
                                 "':', '-' and {rank} only" },
        { "worker: {name: 'a{rnk}'}",
          "t.yaml:1:16: worker.name: 'a{rnk}' may hold letters, digits, "
          "'_', ':', '-' and {rank} only" },
        { "worker: {name: ''}",
          "t.yaml:1:16: worker.name: expected 1 to 127 characters, found ''" },
        { "worker: {group: 'g{rank}'}",
          "t.yaml:1:17: worker.group: 'g{rank}' may hold letters, digits, '_', ':', '-' only" },
        { "worker: {num_worker_threads: 0}",
          "t.yaml:1:30: worker.num_worker_threads: expected 1 to 4096, found '0'" },
        { "worker: {rpc_timeout: 60}", "t.yaml:1:23: worker.rpc_timeout: a duration needs a unit "
                                       "(ms, s, m, h), found '60'" },
        { "worker: {rpc_timeout: 0s}",
          "t.yaml:1:23: worker.rpc_timeout: expected at least 1ms, found '0s'" },
        { "worker: {rank: 4, world_size: 4}",
          "t.yaml:1:16: worker.rank: 4 does not exist in a group "
          "of 4 (ranks begin at 0)" },
        { "worker: {rank: 32768}", "t.yaml:1:16: worker.rank: expected 0 to 32767, found '32768'" },
        { "worker: {devices: cuda:0}",
          "t.yaml:1:19: worker.devices: expected a list such as [a, b], found 'cuda:0'" },
        { "worker: {devices: [cuda]}",
          "t.yaml:1:19: worker.devices: expected a device such as cpu or cuda:0, found 'cuda'" },
        { "worker: {devices: [cuda:128]}", "t.yaml:1:19: worker.devices: expected a device such as "
                                           "cpu or cuda:0, found 'cuda:128'" },
        { "worker: {device_maps: [a]}", "t.yaml:1:23: worker.device_maps: expected a map such as "
                                        "{worker1: {cuda:0: cuda:1}}" },
        { "worker: {device_maps: {w: cuda:0}}",
          "t.yaml:1:27: worker.device_maps: expected a map such as {cuda:0: cuda:1} for 'w', found "
          "'cuda:0'" },
        { "worker: {device_maps: {w: {gpu: cpu}}}",
          "t.yaml:1:28: worker.device_maps: expected a device such as cpu or cuda:0, found 'gpu'" },
        { "worker: {device_maps: {w: {cpu: cuda:x}}}",
          "t.yaml:1:33: worker.device_maps: expected a device such as cpu or cuda:0, found "
          "'cuda:x'" },
        { "init_method: me:pw@host", "t.yaml:1:14: init_method: expected env://, tcp://HOST:PORT, "
                                     "file://PATH or PLUGIN://..., found "
                                     "'me:***@host'" },
        { "init_method: [a]",
          "t.yaml:1:14: 'init_method': expected text such as env://, found a list" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tenrec_config *config = NULL;
        tenrec_error err = { 0 };
        tenrec_status st = tenrec_config_parse(cases[i][0], "t.yaml", &config, &err);
        assert_string_equal(err.text, cases[i][1]);
        assert_int_equal(st, TENREC_ECONFIG);
        assert_null(config);
        assert_int_equal(tenrec_config_parse(cases[i][0], NULL, &config, NULL), TENREC_ECONFIG);
    }
}

TEST(config_parse_refuses_no_text)
{
    struct tenrec_config *config;

    assert_int_equal(tenrec_config_parse(NULL, NULL, &config, NULL), TENREC_EINVAL);
}

static struct shown shown_of(const struct tenrec_config *config)
{
    struct shown shown = { "" };
    tenrec_error err = { 0 };

    if (config_show(config, show_line, &shown, &err) != TENREC_OK)
        fail_msg("%s", err.text);
    return shown;
}

TEST(config_is_the_default_when_nothing_is_written)
{
    static const char *const lines[] = {
        "worker.name = worker{rank} (default)", "worker.num_worker_threads = 8 (default)",
        "worker.rpc_timeout = 60s (default)",   "worker.devices = [] (default)",
        "worker.device_maps = {} (default)",    "worker.rank = (not set) (default)",
        "worker.group = default (default)",     "init_method = env:// (default)",
        "backend = tensorpipe (default)",
    };
    static const char *const texts[] = { "", "# nothing\n", "~\n" };

    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        struct tenrec_config *config = config_of(texts[t]);
        struct shown shown = shown_of(config);
        for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
            assert_shown(&shown, lines[i]);
        tenrec_config_drop(config);
    }
}

TEST(config_observe_keeps_the_observers_that_are_not_written)
{
    static const char *const ways[][2] = { { "observe: { metrics: 127.0.0.1:1 }", NULL },
                                           { "backend: tensorpipe", "{ metrics: 127.0.0.1:1 }" } };
    struct tenrec_config *config;
    struct config_observe *o;
    tenrec_error err;

    for (size_t i = 0; i < 2; i++) {
        assert_status(tenrec_config_parse(ways[i][0], "t.yaml", &config, &err), &err);
        if (ways[i][1])
            assert_status(tenrec_config_set(config, "observe", ways[i][1], &err), &err);
        assert_status(config_observe_make(config, &o, &err), &err);
        assert_string_equal(o->metrics, "127.0.0.1:1");
        assert_string_equal(o->metrics_observer, "prometheus");
        assert_string_equal(o->traces_observer, "otlp");
        config_observe_drop(o);
        tenrec_config_drop(config);
    }
}

TEST(config_settings_are_typed)
{
    struct tenrec_config *config = config_of(
        "worker:\n  name: trainer{rank}\n  num_worker_threads: 2\n  rpc_timeout: none\n"
        "  init_timeout: 5s\n  rank: 3\n  world_size: 4\n  group: g\n  max_queued_calls: 7\n"
        "  devices: [cpu, cuda:1]\n  device_maps: {worker1: {cuda:0: cuda:1, cpu: cpu}, w2: {}}\n"
        "init_method: tcp://h:1\n");
    struct config_settings *s = NULL;

    assert_int_equal(config_settings_make(config, &s, NULL), TENREC_OK);
    tenrec_config_drop(config); /* the settings stand on their own */
    assert_string_equal(s->name, "trainer{rank}");
    assert_int_equal(s->num_worker_threads, 2);
    assert_true(s->rpc_timeout_ms == TENREC_FOREVER);
    assert_int_equal(s->init_timeout_ms, 5000);
    assert_int_equal(s->rank, 3);
    assert_int_equal(s->world_size, 4);
    assert_string_equal(s->group, "g");
    assert_int_equal(s->max_queued_calls, 7);
    assert_int_equal(s->n_devices, 2);
    assert_int_equal(s->device[0].kind, TENREC_CPU);
    assert_int_equal(s->device[1].kind, TENREC_CUDA);
    assert_int_equal(s->device[1].index, 1);
    assert_int_equal(s->n_device_maps, 2);
    assert_string_equal(s->device_map[0].worker, "worker1");
    assert_int_equal(s->device_map[0].n, 2);
    assert_int_equal(s->device_map[0].pair[0].from.index, 0);
    assert_int_equal(s->device_map[0].pair[0].to.index, 1);
    assert_int_equal(s->device_map[0].pair[1].to.kind, TENREC_CPU);
    assert_int_equal(s->device_map[1].n, 0);
    assert_string_equal(s->init_method, "tcp://h:1");
    assert_string_equal(s->init_method_where, "t.yaml:12:14");
    config_settings_drop(s);
    config_settings_drop(NULL);
}

TEST(config_settings_leave_rank_open_when_not_set)
{
    struct tenrec_config *config = config_of("");
    struct config_settings *s = NULL;

    assert_int_equal(config_settings_make(config, &s, NULL), TENREC_OK);
    assert_int_equal(s->rank, -1);
    assert_int_equal(s->world_size, -1);
    assert_int_equal(s->n_devices, 0);
    assert_int_equal(s->n_device_maps, 0);
    config_settings_drop(s);
    tenrec_config_drop(config);
}

TEST(config_layers_are_outermost_first)
{
    struct tenrec_config *config =
        config_of("backend: c\nbackends:\n  a: {plugin: ./x.so}\n  b: {plugin: q, wraps: a}\n"
                  "  c: {plugin: r, wraps: b, options: {o: 1}}\n  d: {plugin: s}\n");
    struct config_layer *layer;
    char where[POSITION_TEXT_MAX];
    size_t n;

    assert_int_equal(config_layers(config, &layer, &n, NULL), TENREC_OK);
    assert_int_equal(n, 3);
    assert_string_equal(layer[0].name, "c");
    assert_string_equal(layer[0].plugin, "r");
    assert_string_equal(layer[0].wraps, "b");
    assert_string_equal(position_text(&layer[0].where, where), "t.yaml:5:3");
    assert_string_equal(position_text(&layer[0].plugin_where, where), "t.yaml:5:15");
    assert_string_equal(position_text(&layer[0].wraps_where, where), "t.yaml:5:25");
    assert_string_equal(node_get(layer[0].options, "o")->text, "1");
    assert_false(layer[0].innermost);
    assert_string_equal(layer[2].name, "a");
    assert_string_equal(layer[2].plugin, "./x.so");
    assert_null(layer[2].wraps);
    assert_null(layer[2].options);
    assert_string_equal(position_text(&layer[2].wraps_where, where), "t.yaml:3:3");
    assert_true(layer[2].innermost);
    free(layer);
    assert_int_equal(config_entries(config, SECTION_BACKENDS, &layer, &n, NULL), TENREC_OK);
    assert_int_equal(n, 4);
    assert_string_equal(layer[3].name, "d");
    assert_true(layer[0].innermost);
    assert_false(layer[3].innermost); /* not of the chain in use */
    free(layer);
    tenrec_config_drop(config);
}

TEST(config_set_is_stronger_than_the_file)
{
    static const char *const set[][2] = {
        { "worker.rpc_timeout", "2s" },
        { "worker.name", "w{rank}" },
        { "worker.devices", "[cpu]" },
        { "worker.device_maps", "{w1: {cpu: cuda:3}}" },
        { "init_method", "file:///tmp/x" },
        { "backends.b.plugin", "q" },
        { "backends.c", "{plugin: r, wraps: b, options: {x: 1}}" },
        { "backend", "c" },
    };
    static const char *const lines[] = {
        "worker.rpc_timeout = 2s (code)",
        "worker.name = w{rank} (code)",
        "worker.devices = [cpu] (code)",
        "worker.device_maps = {w1: {cpu: cuda:3}} (code)",
        "worker.group = g (t.yaml:1:43)",
        "init_method = file:///tmp/x (code)",
        "backend = c (code)",
    };
    struct tenrec_config *config = config_of("worker: {rpc_timeout: 1s, name: x, group: g}\n" USE);
    struct shown shown;
    struct config_layer *layer;
    size_t n;

    for (size_t i = 0; i < sizeof set / sizeof set[0]; i++) {
        tenrec_error err = { 0 };
        if (tenrec_config_set(config, set[i][0], set[i][1], &err) != TENREC_OK)
            fail_msg("%s", err.text);
    }
    shown = shown_of(config);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        assert_shown(&shown, lines[i]);
    assert_int_equal(config_layers(config, &layer, &n, NULL), TENREC_OK);
    assert_int_equal(n, 2);
    assert_string_equal(node_get(layer[0].options, "x")->text, "1");
    assert_string_equal(layer[1].plugin, "q");
    free(layer);
    tenrec_config_drop(config);
}

TEST(config_set_changes_nothing_when_refused)
{
    static const char *const cases[][3] = {
        { "wroker.name", "x",
          "set 'wroker.name': code: unknown key 'wroker' (did you mean 'worker'?)" },
        { "worker.nam", "x",
          "set 'worker.nam': code: worker: has no key 'nam' (did you mean 'name'?)" },
        { "worker.rpc_timeout", "5",
          "set 'worker.rpc_timeout': code: worker.rpc_timeout: a duration "
          "needs a unit (ms, s, m, h), found '5'" },
        { "worker.name.x", "y",
          "set 'worker.name.x': the key has too many parts: set the whole "
          "value one level up" },
        { "backend.x", "y", "set 'backend.x': 'backend' holds no further keys" },
        { "backend", "b", "set 'backend': code: backend 'b' is not in 'backends' (known: a)" },
        { "backends.a.wraps", "a",
          "set 'backends.a.wraps': code: backend 'a': wraps itself: a -> a" },
        { "backends.b.wraps", "a",
          "set 'backends.b.wraps': code: backend 'b': 'plugin' is missing: name the plugin" },
        { "backends.a.options.x.y", "z",
          "set 'backends.a.options.x.y': the key has too many parts: "
          "set the whole value one level up" },
        { "backends..plugin", "z", "set 'backends..plugin': a part of the key is empty" },
        { "", "z", "set '': a part of the key is empty" },
        { "backends", "{b: {plugin: q}}",
          "set 'backends': t.yaml:1:10: backend 'a' is not in "
          "'backends' (known: b)" },
        { "worker", "[x]", "set 'worker': code: 'worker': expected a map, found a list" },
        { "worker", "{",
          "set 'worker': code: not valid YAML: while parsing a flow node, did not "
          "find expected node content" },
        { "worker.device_maps", "cpu",
          "set 'worker.device_maps': code: worker.device_maps: expected "
          "a map such as {worker1: {cuda:0: cuda:1}}" },
    };
    struct tenrec_config *config = config_of(USE);
    struct shown before = shown_of(config), after;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tenrec_error err = { 0 };
        tenrec_status st = tenrec_config_set(config, cases[i][0], cases[i][1], &err);
        assert_string_equal(err.text, cases[i][2]);
        assert_int_equal(st, TENREC_ECONFIG);
    }
    assert_int_equal(tenrec_config_set(config, NULL, "x", NULL), TENREC_EINVAL);
    assert_int_equal(tenrec_config_set(config, "backend", NULL, NULL), TENREC_EINVAL);
    after = shown_of(config);
    assert_string_equal(before.text, after.text);
    tenrec_config_drop(config);
}

TEST(config_set_reads_an_option_by_its_type)
{
    struct tenrec_config *config = config_of(USE);
    struct config_layer *layer;
    struct sample *s;
    void *opts = NULL;
    size_t n;
    tenrec_error err = { 0 };

    tenrec_config_set(config, "backends.a.options.transports", "shm,uv", NULL);
    tenrec_config_set(config, "backends.a.options.ports", "[1, 2]", NULL);
    tenrec_config_set(config, "backends.a.options.delays", "CALL=2,SCRIPT_CALL=none", NULL);
    tenrec_config_set(config, "backends.a.options.labels", "{x: 'a, b'}", NULL);
    tenrec_config_set(config, "backends.a.options.ifname", "[::1]", NULL);
    assert_int_equal(config_layers(config, &layer, &n, NULL), TENREC_OK);
    if (options_make(&sample, &layer[0], &opts, &err) != TENREC_OK)
        fail_msg("%s", err.text);
    s = opts;
    assert_string_equal(s->transports.v[0].s, "shm");
    assert_string_equal(s->transports.v[1].s, "uv");
    assert_int_equal(s->ports.v[1].i, 2);
    assert_int_equal(s->delays.v[0].value.ms, 2000);
    assert_true(s->delays.v[1].value.ms == TENREC_FOREVER);
    assert_string_equal(s->labels.v[0].value.s, "a, b");
    assert_string_equal(s->ifname, "[::1]");
    options_drop(opts);
    free(layer);
    tenrec_config_set(config, "backends.a.options.dealy", "1s", NULL);
    assert_int_equal(config_layers(config, &layer, &n, NULL), TENREC_OK);
    assert_int_equal(options_make(&sample, &layer[0], &opts, &err), TENREC_ECONFIG);
    assert_string_equal(err.text,
                        "code: backend 'a': has no option 'dealy' (did you mean 'delay'?)");
    free(layer);
    tenrec_config_drop(config);
}

TEST(config_shows_an_entry_with_sources_and_without_secrets)
{
    struct tenrec_config *config =
        config_of("init_method: tcp://me:pw@h:1\nbackend: b\nbackends:\n  a: {plugin: p}\n"
                  "  b: {plugin: q, wraps: a, options: {password: s3cret, delay: 1s}}\n");
    struct config_layer *layer;
    struct shown shown = shown_of(config);
    size_t n;

    assert_shown(&shown, "init_method = tcp://me:***@h:1 (t.yaml:1:14)");
    assert_int_equal(config_layers(config, &layer, &n, NULL), TENREC_OK);
    shown.text[0] = '\0';
    assert_int_equal(options_show(&sample, &layer[0], show_line, &shown, NULL), TENREC_OK);
    assert_shown(&shown, "backends.b.plugin = q (t.yaml:5:15)");
    assert_shown(&shown, "backends.b.wraps = a (t.yaml:5:25)");
    assert_shown(&shown, "backends.b.options.password = *** (t.yaml:5:48)");
    assert_shown(&shown, "backends.b.options.delay = 1s (t.yaml:5:63)");
    assert_shown(&shown, "backends.b.options.transports = [uv] (default)");
    assert_shown(&shown, "backends.b.options.ifname = (not set) (default)");
    assert_null(strstr(shown.text, "s3cret"));
    free(layer);
    tenrec_config_drop(config);
}

int main(void)
{
    return testing_run(clean_environment, NULL);
}
