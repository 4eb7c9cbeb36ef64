/* SPDX-License-Identifier: Apache-2.0 */
#include "core/plugin/plugin.h"

#include "../testing.h"
#include "core/backend/backend.h"
#include "core/base/loop.h"

#include <pthread.h>
#include <stdlib.h>
#include <tenrec/backend.h>

static tenrec_status construct(void *opts, tenrec_error *err)
{
    (void)opts, (void)err;
    return TENREC_OK;
}

static tenrec_status init(const struct tenrec_init *in, struct tenrec_agent *self,
                          tenrec_error *err)
{
    (void)in, (void)self;
    return tenrec_fail(err, TENREC_EUNSUPPORTED, "makes no agents");
}

static const struct tenrec_plugin own = {
    TENREC_PLUGIN_HEADER,
    .name = "own",
    .version = "1",
    .summary = "Of this program.",
};

static void unload_all(void)
{
    const char *const names[] = { "own", "echo", "old_wrapper", "bad_start", "other", "third" };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        tenrec_plugin_unload(names[i], NULL);
}

TEST_WITH(register_backend_makes_a_name_known, unload_all, unload_all)
{
    struct plugin *b;
    tenrec_error err;

    assert_false(tenrec_backend_registered("own"));
    assert_status(tenrec_register_backend(&own, construct, init, &err), &err);
    assert_true(tenrec_backend_registered("own"));
    assert_status(plugin_get("own", &b, &err), &err);
    assert_ptr_equal(plugin_description(b), &own);
    assert_ptr_equal(plugin_loaded(b)->construct, construct);
    assert_string_equal(plugin_path(b), "");
    plugin_put(b);
}

/* Lists of maps: their tables are looked at like those of options. */
TEST_WITH(register_backend_checks_the_tables_of_records, unload_all, unload_all)
{
#define INNER                                                                                      \
    {                                                                                              \
        "do", TENREC_OPT_STRING, .help = "Help."                                                   \
    }
    static const struct tenrec_option good[] = { INNER };
    static const struct tenrec_option no_help[] = { { "do", TENREC_OPT_STRING, .offset = 0 } };
    static const struct tenrec_option_record inside = TENREC_OPTION_RECORD(good, const char *);
    static const struct tenrec_option nested[] = { { "r", TENREC_OPT_RECORDS, .help = "Help.",
                                                     .record = &inside } };
    static const struct tenrec_option_record records[] = {
        TENREC_OPTION_RECORD(good, const char *),
        TENREC_OPTION_RECORD(good, char),
        TENREC_OPTION_RECORD(no_help, const char *),
        TENREC_OPTION_RECORD(nested, struct tenrec_option_records),
        { .options = NULL, .n_options = 1, .option_size = sizeof good[0], .size = 8 },
    };
    static const char *const text[] = {
        NULL,
        "record of option 'rules': option 'do' is at bytes 0 to 8 of an options struct of 1",
        "record of option 'rules': option 'do' has no help",
        "record of option 'rules': option 'r': nested records are not supported",
        "record of option 'rules': has 1 options, but no table",
        "option 'rules' has no record",
    };
    tenrec_error err;

    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) {
        const struct tenrec_option rules = { "rules", TENREC_OPT_RECORDS, .help = "Help.",
                                             .record = i < sizeof records / sizeof records[0]
                                                           ? &records[i]
                                                           : NULL };
        struct tenrec_plugin plugin = own;
        plugin.options = &rules;
        plugin.n_options = 1;
        plugin.option_size = sizeof rules;
        plugin.options_size = sizeof(struct tenrec_option_records);
        if (text[i]) {
            assert_int_equal(tenrec_register_backend(&plugin, construct, init, &err),
                             TENREC_EPLUGIN);
            assert_text_has(err.text, text[i]);
        } else {
            assert_status(tenrec_register_backend(&plugin, construct, init, &err), &err);
            assert_status(tenrec_plugin_unload("own", &err), &err);
        }
    }
}

TEST_WITH(register_backend_skips_extensions_of_unknown_kinds, unload_all, unload_all)
{
    const struct tenrec_extension last = { TENREC_EXTENSION_PRIVATE + 2, sizeof last, NULL };
    const struct tenrec_extension first = { 0x7fffffff, sizeof first, &last };
    struct tenrec_plugin extended = own;
    tenrec_error err;

    extended.extensions = &first;
    assert_status(tenrec_register_backend(&extended, construct, init, &err), &err);
    assert_true(tenrec_backend_registered(own.name));
    assert_ptr_equal(tenrec_extension_find(&first, last.kind, sizeof last), &last);
    assert_null(tenrec_extension_find(&first, last.kind, sizeof last + 1));
    assert_null(tenrec_extension_find(&first, 1, 0));
    assert_status(tenrec_plugin_unload(own.name, &err), &err);
}

TEST_WITH(register_backend_refuses_a_name_twice, unload_all, unload_all)
{
    tenrec_error err;

    assert_status(tenrec_register_backend(&own, construct, init, &err), &err);
    assert_int_equal(tenrec_register_backend(&own, construct, init, &err), TENREC_EEXIST);
    assert_string_equal(err.text, "backend 'own' is registered already, by the program");
}

TEST_WITH(register_backend_refuses_plugins_out_of_contract, unload_all, unload_all)
{
    struct tenrec_plugin bad = own;
    tenrec_error err;

    bad.abi_major++;
    assert_int_equal(tenrec_register_backend(&bad, construct, init, &err), TENREC_EABI);
    assert_int_equal(tenrec_register_backend(NULL, construct, init, &err), TENREC_EINVAL);
    assert_int_equal(tenrec_register_backend(&own, NULL, init, &err), TENREC_EINVAL);
    assert_text_has(err.text, "construct is NULL");
    assert_int_equal(tenrec_register_backend(&own, construct, NULL, &err), TENREC_EINVAL);
}

TEST_WITH(load_backend_twice_gives_one_handle, unload_all, unload_all)
{
    struct plugin *by_name, *by_path, *again;
    tenrec_error err;

    assert_status(plugin_get("echo", &by_name, &err), &err);
    assert_status(plugin_get("echo", &again, &err), &err);
    assert_ptr_equal(by_name, again);
    assert_status(plugin_get(plugin_path(by_name), &by_path, &err), &err);
    assert_ptr_equal(by_name, by_path);
    assert_int_equal(tenrec_plugin_unload("echo", &err), TENREC_EBUSY);
    assert_text_has(err.text, "backend 'echo' is in use 3 times");
    plugin_put(by_name);
    plugin_put(again);
    assert_int_equal(tenrec_plugin_unload("echo", &err), TENREC_EBUSY);
    assert_text_has(err.text, "in use 1 time:");
    plugin_put(by_path);
    assert_status(tenrec_plugin_unload("echo", &err), &err);
    assert_false(tenrec_backend_registered("echo"));
}

TEST_WITH(load_backend_works_again_after_unload, unload_all, unload_all)
{
    tenrec_error err;

    for (int i = 0; i < 3; i++) {
        assert_status(tenrec_plugin_load("echo", &err), &err);
        assert_true(tenrec_backend_registered("echo"));
        assert_status(tenrec_plugin_unload("echo", &err), &err);
    }
}

TEST_WITH(load_backend_refuses_a_second_file_of_the_name, unload_all, unload_all)
{
    tenrec_error err;

    assert_status(tenrec_plugin_load("echo", &err), &err);
    assert_int_equal(tenrec_plugin_load(FIXTURES "/second_echo.so", &err), TENREC_EEXIST);
    assert_text_has(err.text, "second_echo.so': backend 'echo' is registered already, from '");
    assert_text_has(err.text, "/echo.so'");
}

TEST_WITH(load_backend_refuses_a_file_that_calls_itself_otherwise, unload_all, unload_all)
{
    tenrec_error err;
    const char *path = getenv("TENREC_PLUGIN_PATH");
    char *old = strdup(path ? path : "");

    setenv("TENREC_PLUGIN_PATH", FIXTURES, 1);
    assert_int_equal(tenrec_plugin_load("other_name", &err), TENREC_EPLUGIN);
    assert_text_has(err.text, "has the name 'something_else', expected 'other_name'");
    setenv("TENREC_PLUGIN_PATH", old, 1);
    free(old);
}

TEST_WITH(load_backend_names_the_missing_plugin, unload_all, unload_all)
{
    tenrec_error err;

    assert_int_equal(tenrec_plugin_load("ecoh", &err), TENREC_EPLUGIN);
    assert_text_has(err.text, "no plugin 'ecoh' (did you mean 'echo'?)");
    assert_int_equal(tenrec_plugin_load("", &err), TENREC_EINVAL);
}

TEST_WITH(unload_backend_refuses_an_unknown_name, unload_all, unload_all)
{
    tenrec_error err;

    assert_int_equal(tenrec_plugin_unload("nobody", &err), TENREC_ENOTFOUND);
    assert_string_equal(err.text, "no backend 'nobody' is registered");
}

TEST_WITH(unload_backend_refuses_while_an_agent_lives, unload_all, unload_all)
{
    static const bool refuse = false;
    const struct chain_identity id = { .world = 1, .name = "w" };
    const struct chain_user user = { 0 };
    struct chain_layer layer = { "here", "", NULL, &refuse };
    struct loop *loop;
    struct chain *c;
    tenrec_error err;

    assert_status(loop_open(&loop, &err), &err);
    assert_status(plugin_get("echo", &layer.backend, &err), &err);
    assert_status(chain_open(&layer, 1, &id, loop, &user, &c, &err), &err);
    plugin_put(layer.backend);
    assert_int_equal(tenrec_plugin_unload("echo", &err), TENREC_EBUSY);
    chain_close(c);
    assert_status(tenrec_plugin_unload("echo", &err), &err);
    loop_close(loop);
}

/* Returns true if a file with this in its path is mapped into this process. */
static bool mapped(const char *part)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[1024];
    bool found = false;

    assert_non_null(f);
    while (!found && fgets(line, sizeof line, f))
        found = strstr(line, part) != NULL;
    fclose(f);
    return found;
}

/* bad_start says that it may be unmapped, old_wrapper does not. */
TEST_WITH(unload_backend_unmaps_only_plugins_that_allow_unmapping, unload_all, unload_all)
{
    const char *before = getenv("TENREC_DLCLOSE");
    char *old = before ? strdup(before) : NULL;
    tenrec_error err;

    unsetenv("TENREC_DLCLOSE");
    assert_status(tenrec_plugin_load(FIXTURES "/bad_start.so", &err), &err);
    assert_status(tenrec_plugin_load(FIXTURES "/old_wrapper.so", &err), &err);
    assert_status(tenrec_plugin_unload("bad_start", &err), &err);
    assert_status(tenrec_plugin_unload("old_wrapper", &err), &err);
#ifdef __GLIBC__ /* musl unmaps nothing */
    assert_false(mapped("/bad_start.so"));
#endif
    assert_true(mapped("/old_wrapper.so"));
    setenv("TENREC_DLCLOSE", "0", 1);
    assert_status(tenrec_plugin_load(FIXTURES "/bad_start.so", &err), &err);
    assert_status(tenrec_plugin_unload("bad_start", &err), &err);
    assert_true(mapped("/bad_start.so"));
    if (old)
        setenv("TENREC_DLCLOSE", old, 1);
    else
        unsetenv("TENREC_DLCLOSE");
    free(old);
}

static void *load_and_unload(void *arg)
{
    for (int i = 0; i < 50; i++) {
        struct plugin *b;
        if (plugin_get("echo", &b, NULL) == TENREC_OK) {
            if (strcmp(plugin_description(b)->name, "echo") != 0)
                *(bool *)arg = false;
            plugin_put(b);
        } else {
            *(bool *)arg = false;
        }
        tenrec_plugin_unload("echo", NULL);
    }
    return NULL;
}

TEST_WITH(registry_holds_when_used_by_many_threads, unload_all, unload_all)
{
    bool good[4] = { true, true, true, true };
    pthread_t thread[4];

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, load_and_unload, &good[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        assert_true(good[i]);
    }
}

static void collect(void *arg, struct plugin *b)
{
    char *text = arg;
    size_t n = strlen(text);

    snprintf(text + n, 128 - n, "%s ", plugin_description(b)->name);
}

TEST_WITH(handles_stay_valid_when_others_register, unload_all, unload_all)
{
    struct tenrec_plugin more[] = { own, own };
    struct plugin *before, *after;
    char names[128] = "";
    tenrec_error err;

    more[0].name = "other";
    more[1].name = "third";
    assert_status(tenrec_register_backend(&own, construct, init, &err), &err);
    assert_status(plugin_get("own", &before, &err), &err);
    assert_status(tenrec_register_backend(&more[0], construct, init, &err), &err);
    assert_status(tenrec_register_backend(&more[1], construct, init, &err), &err);
    assert_status(plugin_get("own", &after, &err), &err);
    assert_ptr_equal(before, after);
    plugin_each(TENREC_PLUGIN_BACKEND, collect, names);
    assert_string_equal(names, "own other third ");
    plugin_put(before);
    plugin_put(after);
    unload_all();
}
