/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/gate.h"
#include "backend/loader.h"

#include "../testing.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* File, status and what the error must say. */
struct refusal {
    const char *file;
    tenrec_status status;
    const char *text;
};

static const struct refusal refusals[] = {
    { "wrong_magic", TENREC_EPLUGIN, "magic is 12345678, expected 544e5243" },
    { "wrong_major", TENREC_EABI, "built for ABI 1." },
    { "short_description", TENREC_EABI, "its description has 32 bytes" },
    { "huge_description", TENREC_EABI, "its description has 1000000 bytes" },
    { "no_plugin", TENREC_EPLUGIN, "does not export 'tenrec_plugin'" },
    { "no_construct", TENREC_EPLUGIN, "does not export 'tenrec_construct_options'" },
    { "no_init", TENREC_EPLUGIN, "does not export 'tenrec_init_agent'" },
    { "leans", TENREC_EPLUGIN, "does not export 'tenrec_plugin' itself: it lies in '" },
    { "store_kind", TENREC_EPLUGIN, "is a store (kind 2), but a backend is wanted here" },
    { "unknown_kind", TENREC_EPLUGIN, "is of an unknown kind (kind 77)" },
    { "bad_name", TENREC_EPLUGIN, "has the name 'Not a name'" },
    { "null_name", TENREC_EPLUGIN, "has the name ''" },
    { "no_summary", TENREC_EPLUGIN, "has no summary" },
    { "option_table_null", TENREC_EPLUGIN, "has 2 options, but no table" },
    { "option_stride", TENREC_EABI, "its table has 8 bytes per option" },
    { "option_many", TENREC_EPLUGIN, "has 1000000 options" },
    { "option_outside", TENREC_EPLUGIN, "option 'b' lies at bytes 12 to 20 of an options struct" },
    { "option_far_outside", TENREC_EPLUGIN, "option 'b' lies at bytes 4294967295 to" },
    { "option_unaligned", TENREC_EPLUGIN, "option 'b' lies at the unaligned offset 5" },
    { "option_type", TENREC_EPLUGIN, "option 'b' has the unknown type 42" },
    { "option_item", TENREC_EPLUGIN, "option 'b' has items of the type 2, but is no list" },
    { "option_nested", TENREC_EPLUGIN, "option 'a' has items of the type 7, expected a plain" },
    { "option_twice", TENREC_EPLUGIN, "option 'a' is there twice" },
    { "option_overlap", TENREC_EPLUGIN, "options 'a' and 'b' overlap" },
    { "option_key", TENREC_EPLUGIN, "option 1 has the key 'B b'" },
    { "option_no_help", TENREC_EPLUGIN, "option 'b' has no help" },
};
#define N_REFUSALS (sizeof refusals / sizeof refusals[0])

static void refuses(void **state)
{
    const struct refusal *r = *state;
    struct loaded l;
    tenrec_error err;
    char path[512];

    snprintf(path, sizeof path, FIXTURES "/%s.so", r->file);
    assert_int_equal(loader_open(path, TENREC_PLUGIN_BACKEND, &l, &err), r->status);
    assert_text_has(err.text, path);
    assert_text_has(err.text, r->text);
}

static void loader_open_takes_a_newer_minor(void **state)
{
    struct loaded l;
    tenrec_error err;

    (void)state;
    assert_status(loader_open(FIXTURES "/newer_minor.so", TENREC_PLUGIN_BACKEND, &l, &err), &err);
    assert_string_equal(l.plugin->name, "newer_minor");
    loader_close(&l);
}

static void loader_open_takes_an_older_description(void **state)
{
    struct loaded l;
    tenrec_error err;

    (void)state;
    assert_status(loader_open(FIXTURES "/old_wrapper.so", TENREC_PLUGIN_BACKEND, &l, &err), &err);
    assert_false(TENREC_HAS(l.plugin, probe));
    loader_close(&l);
}

static void loader_open_takes_a_plugin_from_outside(void **state)
{
    struct loaded l;
    tenrec_error err;

    (void)state;
    assert_status(loader_open(FIXTURES "/outside.so", TENREC_PLUGIN_BACKEND, &l, &err), &err);
    assert_string_equal(l.plugin->version, "7");
    loader_close(&l);
}

/* --- files that are no shared objects ------------------------------------- */

static char folder[] = "/tmp/tenrec-loader-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static void expect_refused(const char *path, const char *text)
{
    struct loaded l;
    tenrec_error err;

    assert_int_equal(loader_open(path, TENREC_PLUGIN_BACKEND, &l, &err), TENREC_EPLUGIN);
    assert_text_has(err.text, path);
    assert_text_has(err.text, text);
}

static void loader_open_refuses_a_folder(void **state)
{
    (void)state;
    expect_refused(folder, "is not a regular file");
}

static void loader_open_refuses_a_fifo_without_hanging(void **state)
{
    char path[64];

    (void)state;
    snprintf(path, sizeof path, "%s/fifo.so", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_refused(path, "is not a regular file");
    unlink(path);
}

static void loader_open_refuses_a_text_file(void **state)
{
    char path[64];
    FILE *f;

    (void)state;
    snprintf(path, sizeof path, "%s/text.so", folder);
    f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < 100; i++)
        fputs("this is no shared object\n", f);
    fclose(f);
    expect_refused(path, "invalid ELF header");
    unlink(path);
}

static void loader_open_names_the_nearest_file_when_there_is_none(void **state)
{
    (void)state;
    expect_refused(FIXTURES "/old_wraper.so", "did you mean 'old_wrapper.so'?");
}

/* --- the search ----------------------------------------------------------- */

static void loader_find_names_the_nearest_and_where_it_looked(void **state)
{
    tenrec_error err;
    char *path;

    (void)state;
    setenv("TENREC_PLUGIN_PATH", "/nowhere:" FIXTURES, 1);
    assert_int_equal(loader_find("bad_strat", &path, &err), TENREC_EPLUGIN);
    assert_text_has(err.text, "no plugin 'bad_strat' (did you mean 'bad_start'?)");
    assert_text_has(err.text, "no bad_strat.so in /nowhere, " FIXTURES);
    assert_text_has(err.text, "(TENREC_PLUGIN_PATH adds folders)");
}

static void loader_find_counts_the_folders_that_find_no_room(void **state)
{
    char folders[600] = "/first";
    tenrec_error err;
    char *path;

    (void)state;
    for (int i = 0; i < 3; i++) {
        size_t used = strlen(folders);
        snprintf(folders + used, sizeof folders - used, ":/%0150d", i);
    }
    setenv("TENREC_PLUGIN_PATH", folders, 1);
    assert_int_equal(loader_find("nosuch", &path, &err), TENREC_EPLUGIN);
    assert_text_has(err.text, "no nosuch.so in /first, /000");
    assert_text_has(err.text, "0000 and 3 more (TENREC_PLUGIN_PATH adds folders)");
}

static void loader_find_takes_the_first_folder_that_has_it(void **state)
{
    tenrec_error err;
    char *path;

    (void)state;
    setenv("TENREC_PLUGIN_PATH", "::/nowhere:" FIXTURES ":/tmp", 1);
    assert_status(loader_find("bad_start", &path, &err), &err);
    assert_string_equal(path, FIXTURES "/bad_start.so");
    free(path);
}

static void loader_find_refuses_what_is_no_name(void **state)
{
    tenrec_error err;
    char *path;

    (void)state;
    assert_int_equal(loader_find("no name", &path, &err), TENREC_EPLUGIN);
    assert_text_has(err.text, "'no name' is no name of a plugin");
}

static void count_echo(void *arg, const char *name, const char *path)
{
    int *n = arg;

    if (strcmp(name, "bad_start") == 0 && strcmp(path, FIXTURES "/bad_start.so") == 0)
        ++*n;
}

static void loader_list_shows_what_can_be_found(void **state)
{
    int n = 0;

    (void)state;
    setenv("TENREC_PLUGIN_PATH", FIXTURES, 1);
    loader_list(count_echo, &n);
    assert_int_equal(n, 1);
}

static void gate_words_a_failure_when_the_plugin_gave_no_text(void **state)
{
    tenrec_error err;

    (void)state;
    tenrec_fail(&err, TENREC_EINVAL, "of another time");
    gate_begin(&err);
    assert_int_equal(gate_end((tenrec_status)-9999, "init", &err), TENREC_EPLUGIN);
    assert_string_equal(err.text, "its init returned -9999, which is no status, and no text");
    gate_begin(&err);
    assert_int_equal(gate_end(TENREC_ENOMEM, "init", &err), TENREC_ENOMEM);
    assert_string_equal(err.text, "its init failed without a text: out of memory");
    gate_begin(&err);
    tenrec_fail(&err, TENREC_EOS, "said so");
    assert_int_equal(gate_end((tenrec_status)5, "init", &err), TENREC_EPLUGIN);
    assert_string_equal(err.text, "said so");
    assert_int_equal(err.code, TENREC_EPLUGIN);
    gate_begin(NULL);
    assert_int_equal(gate_end(TENREC_EOS, "init", NULL), TENREC_EOS);
}

int main(void)
{
    const struct CMUnitTest good[] = {
        cmocka_unit_test(loader_open_takes_a_newer_minor),
        cmocka_unit_test(loader_open_takes_an_older_description),
        cmocka_unit_test(loader_open_takes_a_plugin_from_outside),
        cmocka_unit_test(loader_open_refuses_a_folder),
        cmocka_unit_test(loader_open_refuses_a_fifo_without_hanging),
        cmocka_unit_test(loader_open_refuses_a_text_file),
        cmocka_unit_test(loader_open_names_the_nearest_file_when_there_is_none),
        cmocka_unit_test(loader_find_names_the_nearest_and_where_it_looked),
        cmocka_unit_test(loader_find_counts_the_folders_that_find_no_room),
        cmocka_unit_test(loader_find_takes_the_first_folder_that_has_it),
        cmocka_unit_test(loader_find_refuses_what_is_no_name),
        cmocka_unit_test(loader_list_shows_what_can_be_found),
        cmocka_unit_test(gate_words_a_failure_when_the_plugin_gave_no_text),
    };
    const size_t n_good = sizeof good / sizeof good[0];
    struct CMUnitTest test[sizeof good / sizeof good[0] + N_REFUSALS];
    char name[N_REFUSALS][64];

    memcpy(test, good, sizeof good);
    for (size_t i = 0; i < N_REFUSALS; i++) {
        snprintf(name[i], sizeof name[i], "loader_refuses_%s", refusals[i].file);
        test[n_good + i] =
            (struct CMUnitTest){ name[i], refuses, NULL, NULL, (void *)(uintptr_t)&refusals[i] };
    }
    return cmocka_run_group_tests_name("loader", test, make_folder, remove_folder);
}
