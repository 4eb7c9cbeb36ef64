/* SPDX-License-Identifier: Apache-2.0 */
#include "core/backend/backend.h"

#include "../testing.h"
#include "core/plugin/plugin.h"

#include <tenrec/config.h>

static tenrec_status open_text(const char *text, struct chain_config **ret, tenrec_error *err)
{
    struct tenrec_config *config;
    tenrec_status st = tenrec_config_parse(text, "test.yaml", &config, err);

    if (st != TENREC_OK)
        return st;
    st = chain_config_open(config, ret, err);
    tenrec_config_drop(config);
    return st;
}

static void expect_refused(const char *text, tenrec_status status, const char *place,
                           const char *part)
{
    struct chain_config *s;
    tenrec_error err;

    assert_int_equal(open_text(text, &s, &err), status);
    assert_text_has(err.text, place);
    assert_text_has(err.text, part);
}

TEST(stack_open_loads_outermost_first)
{
    const struct chain_layer *layer;
    struct chain_config *s = NULL;
    tenrec_error err;
    size_t n;

    assert_status(open_text("backend: outer\n"
                            "backends:\n"
                            "  here: { plugin: echo }\n"
                            "  inner: { plugin: faulty, wraps: here }\n"
                            "  outer: { plugin: faulty, wraps: inner }\n",
                            &s, &err),
                  &err);
    layer = chain_config_layers(s, &n);
    assert_int_equal(n, 3);
    assert_string_equal(layer[0].name, "outer");
    assert_string_equal(layer[1].name, "inner");
    assert_string_equal(layer[2].name, "here");
    assert_ptr_equal(layer[0].backend, layer[1].backend);
    assert_string_equal(plugin_description(layer[2].backend)->name, "echo");
    assert_string_equal(layer[0].where, "test.yaml:5:3");
    chain_config_close(s);
}

TEST(stack_open_refuses_wraps_missing)
{
    expect_refused("backend: flaky\nbackends:\n  flaky: { plugin: faulty }\n", TENREC_ECONFIG,
                   "test.yaml:3:3: ", "plugin 'faulty' wraps another backend: name it");
}

TEST(stack_open_refuses_wraps_needless)
{
    expect_refused(
        "backend: a\nbackends:\n  a: { plugin: echo, wraps: b }\n  b: { plugin: echo }\n",
        TENREC_ECONFIG, "test.yaml:3:", "plugin 'echo' wraps nothing: remove 'wraps: b'");
}

TEST(stack_open_refuses_wraps_unknown)
{
    expect_refused("backend: a\nbackends:\n  a: { plugin: faulty, wraps: bb }\n"
                   "  b: { plugin: echo }\n",
                   TENREC_ECONFIG, "test.yaml:3:", "'bb'");
}

TEST(stack_open_refuses_wraps_cyclic)
{
    expect_refused("backend: a\nbackends:\n  a: { plugin: faulty, wraps: b }\n"
                   "  b: { plugin: faulty, wraps: a }\n",
                   TENREC_ECONFIG, "test.yaml:", "wraps");
}

TEST(stack_open_tells_the_place_of_a_missing_plugin)
{
    expect_refused("backend: a\nbackends:\n  a: { plugin: eco }\n", TENREC_EPLUGIN,
                   "test.yaml:3:16: backend 'a': ", "no plugin 'eco' (did you mean 'echo'?)");
}

TEST(stack_open_tells_the_place_of_a_wrong_option)
{
    expect_refused("backend: a\nbackends:\n  a: { plugin: echo, options: { refuze: true } }\n",
                   TENREC_ECONFIG, "test.yaml:3:33", "'refuse'");
}

TEST(stack_open_names_the_place_of_options_that_construct_refuses)
{
    expect_refused("backend: a\nbackends:\n  a:\n    plugin: faulty\n    wraps: b\n    options:\n"
                   "      messages_to_delay: { CALL: 1s, PYTHON_CALL: 2s }\n"
                   "  b: { plugin: echo }\n",
                   TENREC_ECONFIG, "test.yaml:3:3: backend 'a': messages_to_delay: ",
                   "'CALL' and 'PYTHON_CALL' mean the same messages");
}
