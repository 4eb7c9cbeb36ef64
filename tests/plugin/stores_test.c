/* SPDX-License-Identifier: Apache-2.0 */
/* Store plugins: how they are found, loaded and refused, with their options. */
#include "group/store/store.h"

#include "../testing.h"
#include "core/config/config.h"
#include "core/plugin/plugin.h"

#include <stdlib.h>
#include <tenrec/backend.h>
#include <tenrec/config.h>
#include <tenrec/store.h>

struct drawer_options {
    int64_t most;
};

static void set_path(void)
{
    assert_int_equal(setenv("TENREC_PLUGIN_PATH", FIXTURES "/../store:" FIXTURES, 1), 0);
}

static void unset_options(void)
{
    unsetenv("TENREC_STORES__NOTES__MOST");
    unsetenv("TENREC_STORES__DRAWER__MOST");
}

static tenrec_status load(const char *yaml, const char *scheme, struct stores **ret,
                          tenrec_error *err)
{
    struct tenrec_config *config;
    tenrec_status st = tenrec_config_parse(yaml, "t.yaml", &config, err);

    *ret = NULL;
    if (st != TENREC_OK)
        return st;
    st = stores_load(config, scheme, ret, err);
    tenrec_config_drop(config);
    return st;
}

static int64_t most_of(const struct stores *s, const char *scheme)
{
    struct stores_choice c;
    tenrec_error err;

    assert_status(stores_find(s, scheme, &c, &err), &err);
    assert_string_equal(c.plugin->name, "drawer");
    assert_non_null(c.init);
    return ((const struct drawer_options *)c.options)->most;
}

TEST(stores_scheme_is_the_text_before_the_colon)
{
    static const char *const none[] = { "",          "redis",   "redis:/x", "://x",
                                        "Redis://x", "a b://x", "redis:",   "a.b://x" };
    char scheme[STORES_SCHEME_MAX];

    assert_true(stores_scheme("redis://host/jobs", scheme));
    assert_string_equal(scheme, "redis");
    assert_true(stores_scheme("my-own_2://", scheme));
    assert_string_equal(scheme, "my-own_2");
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_false(stores_scheme(none[i], scheme));
    assert_false(stores_scheme(
        "aaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbbcccc://x", scheme));
}

TEST(stores_load_takes_the_plugin_of_that_name)
{
    struct stores *s;
    tenrec_error err;

    assert_status(stores_load(NULL, "drawer", &s, &err), &err);
    assert_int_equal(most_of(s, "drawer"), 1000000);
    stores_drop(s);
    assert_status(load("", "drawer", &s, &err), &err);
    assert_int_equal(most_of(s, "drawer"), 1000000);
    stores_drop(s);
}

TEST(stores_load_loads_the_plugins_of_the_config)
{
    struct stores *s;
    tenrec_error err;

    assert_status(load("stores:\n  notes: {plugin: drawer, options: {most: 7}}\n"
                       "  other: {plugin: drawer}\n",
                       "notes", &s, &err),
                  &err);
    assert_int_equal(most_of(s, "notes"), 7);
    assert_int_equal(most_of(s, "other"), 1000000);
    stores_drop(stores_share(s));
    assert_int_equal(most_of(s, "notes"), 7);
    stores_drop(s);
}

TEST_WITH(stores_load_reads_the_environment, NULL, unset_options)
{
    struct stores *s;
    tenrec_error err;

    setenv("TENREC_STORES__NOTES__MOST", "8", 1);
    setenv("TENREC_STORES__DRAWER__MOST", "9", 1);
    assert_status(load("stores: {notes: {plugin: drawer, options: {most: 7}}}", "drawer", &s, &err),
                  &err);
    assert_int_equal(most_of(s, "notes"), 8);
    assert_int_equal(most_of(s, "drawer"), 9);
    stores_drop(s);
}

TEST(stores_load_is_refused_with_the_place)
{
    static const char *const cases[][3] = {
        { "stores: {notes: {plugin: drawer, options: {most: 0}}}", "notes",
          "t.yaml:1:50: store 'notes': option 'most': expected 1 to" },
        { "stores: {notes: {plugin: drawer, options: {mots: 1}}}", "notes",
          "t.yaml:1:44: store 'notes': has no option 'mots' (did you mean 'most'?)" },
        { "stores: {notes: {plugin: drwer}}", "notes",
          "t.yaml:1:26: store 'notes': no plugin 'drwer' (did you mean 'drawer'?)" },
        { "init_method: drwer://x", "drwer",
          "t.yaml:1:14: store 'drwer': no plugin 'drwer' (did you mean 'drawer'?)" },
        { "stores: {notes: {plugin: newer_minor}}", "notes",
          "is a backend (kind 1), expected a store" },
        { "stores: {notes: {plugin: store_without_init}}", "notes",
          "does not export 'tenrec_init_store'" },
        { "stores: {notes: {}}", NULL, "t.yaml:1:10: store 'notes': 'plugin' is missing" },
        { "stores: {tcp: {plugin: drawer}}", NULL, "t.yaml:1:10: store 'tcp': tcp:// needs no" },
        { "stores: {notes: {plugin: drawer, wraps: x}}", NULL,
          "t.yaml:1:34: store 'notes': unknown key 'wraps'" },
        { "stores: [x]", NULL, "t.yaml:1:9: 'stores': expected a map" },
        { "stores:\n  a-b: {plugin: drawer}\n  A_b: {plugin: drawer}", NULL,
          "t.yaml:3:3: stores 'a-b' and 'A_b' have the same variables (TENREC_STORES__A_B__...)" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct stores *s;
        tenrec_error err;
        assert_int_not_equal(load(cases[i][0], cases[i][1], &s, &err), TENREC_OK);
        assert_text_has(err.text, cases[i][2]);
    }
}

TEST(stores_find_reports_the_error_of_a_plugin_when_asked_for)
{
    const char *yaml = "stores:\n  notes: {plugin: drawer}\n  wrong: {plugin: drwer}\n";
    struct tenrec_config *config;
    struct config_settings *settings;
    struct stores_choice c;
    struct stores *s;
    tenrec_error err;

    assert_status(load(yaml, "notes", &s, &err), &err);
    assert_int_equal(stores_find(s, "wrong", &c, &err), TENREC_EPLUGIN);
    assert_text_has(err.text, "t.yaml:3:19: store 'wrong': no plugin 'drwer'");
    assert_int_equal(stores_find(s, "third", &c, &err), TENREC_ENOTFOUND);
    stores_drop(s);
    assert_status(tenrec_config_parse(yaml, "t.yaml", &config, &err), &err);
    assert_status(config_settings_make(config, &settings, &err), &err);
    assert_int_equal(stores_check(config, settings, &err), TENREC_EPLUGIN);
    config_settings_drop(settings);
    assert_text_has(err.text, "t.yaml:3:19: store 'wrong': no plugin 'drwer'");
    tenrec_config_drop(config);
}

TEST(plugin_of_a_kind_is_no_plugin_of_the_other_kind)
{
    struct plugin *b;
    tenrec_error err;

    assert_status(plugin_get_kind("drawer", TENREC_PLUGIN_STORE, &b, &err), &err);
    assert_null(plugin_loaded(b)->init);
    assert_false(tenrec_backend_registered("drawer"));
    assert_int_equal(tenrec_plugin_load("drawer", &err), TENREC_EPLUGIN);
    assert_string_equal(err.text, "plugin 'drawer': is a store (kind 2), expected a backend");
    plugin_put(b);
}

TEST(store_open_refuses_a_plugin_without_operations)
{
    struct tenrec_store *s = NULL;
    tenrec_error err;

    assert_int_equal(tenrec_store_open("store_without_ops://x", 1000, &s, &err), TENREC_EPLUGIN);
    assert_text_has(err.text, "plugin 'store_without_ops': the plugin has no operation '");
    assert_null(s);
}

TEST_WITH(store_open_fills_the_options, NULL, unset_options)
{
    struct tenrec_store *s;
    tenrec_error err;

    setenv("TENREC_STORES__DRAWER__MOST", "2", 1);
    assert_status(tenrec_store_open("drawer://small", 1000, &s, &err), &err);
    assert_string_equal(tenrec_store_name(s), "drawer \"small\"");
    assert_status(tenrec_store_set(s, "a", "", 0, 1000, &err), &err);
    assert_status(tenrec_store_set(s, "b", "", 0, 1000, &err), &err);
    assert_int_equal(tenrec_store_set(s, "c", "", 0, 1000, &err), TENREC_ETOOBIG);
    assert_string_equal(err.text, "drawer \"small\": it has 2 keys already");
    tenrec_store_close(s);
}

int main(void)
{
    return testing_run(set_path, NULL);
}
