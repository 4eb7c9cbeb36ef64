/* SPDX-License-Identifier: Apache-2.0 */
#include "core/plugin/plugin.h"
#include "core/plugin/plugin_file.h"

#include "../testing.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void refuses(const char *file, tenrec_status status, const char *text)
{
    struct loaded l;
    tenrec_error err;
    char path[512];

    snprintf(path, sizeof path, FIXTURES "/%s.so", file);
    assert_int_equal(loader_open(path, TENREC_PLUGIN_BACKEND, &l, &err), status);
    assert_text_has(err.text, path);
    assert_text_has(err.text, text);
}

/* File, status and what the error must say. */
#define REFUSES(file, status, text)                                                                \
    TEST(loader_refuses_##file)                                                                    \
    {                                                                                              \
        refuses(#file, status, text);                                                              \
    }
REFUSES(wrong_magic, TENREC_EPLUGIN, "magic is 12345678, expected 544e5243")
REFUSES(wrong_major, TENREC_EABI, "built for ABI 2.")
REFUSES(short_description, TENREC_EABI, "the plugin's description has 32 bytes")
REFUSES(huge_description, TENREC_EABI, "the plugin's description has 1000000 bytes")
REFUSES(no_plugin, TENREC_EPLUGIN, "does not export 'tenrec_plugin'")
REFUSES(no_construct, TENREC_EPLUGIN, "does not export 'tenrec_construct_options'")
REFUSES(no_init, TENREC_EPLUGIN, "does not export 'tenrec_init_agent'")
REFUSES(leans, TENREC_EPLUGIN, "does not export 'tenrec_plugin' itself: the symbol is in '")
REFUSES(store_kind, TENREC_EPLUGIN, "is a store (kind 2), expected a backend")
REFUSES(unknown_kind, TENREC_EPLUGIN, "is of an unknown kind (kind 77)")
REFUSES(bad_name, TENREC_EPLUGIN, "has the name 'Not a name'")
REFUSES(null_name, TENREC_EPLUGIN, "has the name ''")
REFUSES(no_summary, TENREC_EPLUGIN, "has no summary")
REFUSES(option_table_null, TENREC_EPLUGIN, "has 2 options, but no table")
REFUSES(option_stride, TENREC_EABI, "the option table has 8 bytes per option")
REFUSES(option_many, TENREC_EPLUGIN, "has 1000000 options")
REFUSES(option_outside, TENREC_EPLUGIN, "option 'b' is at bytes 12 to 20 of an options struct")
REFUSES(option_far_outside, TENREC_EPLUGIN, "option 'b' is at bytes 4294967295 to")
REFUSES(option_unaligned, TENREC_EPLUGIN, "option 'b' is at the unaligned offset 5")
REFUSES(option_type, TENREC_EPLUGIN, "option 'b' has the unknown type 42")
REFUSES(option_item, TENREC_EPLUGIN, "option 'b' has items of the type 2, but is no list")
REFUSES(option_nested, TENREC_EPLUGIN, "option 'a' has items of the type 7, expected a plain")
REFUSES(option_twice, TENREC_EPLUGIN, "duplicate option 'a'")
REFUSES(option_overlap, TENREC_EPLUGIN, "options 'a' and 'b' overlap")
REFUSES(option_key, TENREC_EPLUGIN, "option 1 has the key 'B b'")
REFUSES(option_no_help, TENREC_EPLUGIN, "option 'b' has no help")

TEST(loader_open_takes_a_newer_minor)
{
    struct loaded l;
    tenrec_error err;

    assert_status(loader_open(FIXTURES "/newer_minor.so", TENREC_PLUGIN_BACKEND, &l, &err), &err);
    assert_string_equal(l.plugin->name, "newer_minor");
    loader_close(&l);
}

TEST(loader_open_takes_an_older_description)
{
    struct loaded l;
    tenrec_error err;

    assert_status(loader_open(FIXTURES "/old_wrapper.so", TENREC_PLUGIN_BACKEND, &l, &err), &err);
    assert_false(TENREC_HAS(l.plugin, extensions));
    loader_close(&l);
}

TEST(loader_open_takes_a_plugin_from_outside)
{
    struct loaded l;
    tenrec_error err;

    assert_status(loader_open(FIXTURES "/outside.so", TENREC_PLUGIN_BACKEND, &l, &err), &err);
    assert_string_equal(l.plugin->version, "7");
    loader_close(&l);
}

/* --- files that are no shared objects ------------------------------------- */

static char folder[] = "/tmp/tenrec-loader-XXXXXX";

static void make_folder(void)
{
    assert_non_null(mkdtemp(folder));
}

static void remove_folder(void)
{
    assert_int_equal(rmdir(folder), 0);
}

static void expect_refused(const char *path, const char *text)
{
    struct loaded l;
    tenrec_error err;

    assert_int_equal(loader_open(path, TENREC_PLUGIN_BACKEND, &l, &err), TENREC_EPLUGIN);
    assert_text_has(err.text, path);
    assert_text_has(err.text, text);
}

TEST(loader_open_refuses_a_folder)
{
    expect_refused(folder, "is not a regular file");
}

TEST(loader_open_refuses_a_fifo_without_hanging)
{
    char path[64];

    snprintf(path, sizeof path, "%s/fifo.so", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_refused(path, "is not a regular file");
    unlink(path);
}

TEST(loader_open_refuses_a_text_file)
{
    char path[64];
    FILE *f;

    snprintf(path, sizeof path, "%s/text.so", folder);
    f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < 100; i++)
        fputs("this is no shared object\n", f);
    fclose(f);
#ifdef __GLIBC__
    expect_refused(path, "invalid ELF header");
#else
    expect_refused(path, "Exec format error");
#endif
    unlink(path);
}

TEST(loader_open_names_the_nearest_file_of_a_missing_file)
{
    expect_refused(FIXTURES "/old_wraper.so", "did you mean 'old_wrapper.so'?");
}

/* --- the search ----------------------------------------------------------- */

TEST(loader_find_names_the_nearest_plugin_and_the_searched_folders)
{
    tenrec_error err;
    char *path;

    setenv("TENREC_PLUGIN_PATH", "/nowhere:" FIXTURES, 1);
    assert_int_equal(loader_find("bad_strat", &path, &err), TENREC_EPLUGIN);
    assert_text_has(err.text, "no plugin 'bad_strat' (did you mean 'bad_start'?)");
    assert_text_has(err.text, "no bad_strat.so in /nowhere, " FIXTURES);
    assert_text_has(err.text, "(TENREC_PLUGIN_PATH adds folders)");
}

TEST(loader_find_counts_the_folders_that_find_no_room)
{
    char folders[600] = "/first";
    tenrec_error err;
    char *path;

    for (int i = 0; i < 3; i++) {
        size_t used = strlen(folders);
        snprintf(folders + used, sizeof folders - used, ":/%0150d", i);
    }
    setenv("TENREC_PLUGIN_PATH", folders, 1);
    assert_int_equal(loader_find("nosuch", &path, &err), TENREC_EPLUGIN);
    assert_text_has(err.text, "no nosuch.so in /first, /000");
    assert_text_has(err.text, "0000 and 3 more (TENREC_PLUGIN_PATH adds folders)");
}

TEST(loader_find_takes_the_first_folder_with_the_plugin)
{
    tenrec_error err;
    char *path;

    setenv("TENREC_PLUGIN_PATH", "::/nowhere:" FIXTURES ":/tmp", 1);
    assert_status(loader_find("bad_start", &path, &err), &err);
    assert_string_equal(path, FIXTURES "/bad_start.so");
    free(path);
}

TEST(loader_find_refuses_a_malformed_name)
{
    tenrec_error err;
    char *path;

    assert_int_equal(loader_find("no name", &path, &err), TENREC_EPLUGIN);
    assert_text_has(err.text, "'no name' is no name of a plugin");
}

static void count_echo(void *arg, const char *name, const char *path)
{
    int *n = arg;

    if (strcmp(name, "bad_start") == 0 && strcmp(path, FIXTURES "/bad_start.so") == 0)
        ++*n;
}

TEST(loader_list_shows_all_plugins)
{
    int n = 0;

    setenv("TENREC_PLUGIN_PATH", FIXTURES, 1);
    loader_list(count_echo, &n);
    assert_int_equal(n, 1);
}

TEST(gate_words_a_failure_when_the_plugin_gave_no_text)
{
    tenrec_error err;

    tenrec_fail(&err, TENREC_EINVAL, "of another time");
    plugin_validate_begin(&err);
    assert_int_equal(plugin_validate_end((tenrec_status)-9999, "init", &err), TENREC_EPLUGIN);
    assert_string_equal(err.text,
                        "the plugin's init returned -9999, which is no status, and no text");
    plugin_validate_begin(&err);
    assert_int_equal(plugin_validate_end(TENREC_ENOMEM, "init", &err), TENREC_ENOMEM);
    assert_string_equal(err.text, "the plugin's init failed without a text: out of memory");
    plugin_validate_begin(&err);
    tenrec_fail(&err, TENREC_EOS, "said so");
    assert_int_equal(plugin_validate_end((tenrec_status)5, "init", &err), TENREC_EPLUGIN);
    assert_string_equal(err.text, "said so");
    assert_int_equal(err.code, TENREC_EPLUGIN);
    plugin_validate_begin(NULL);
    assert_int_equal(plugin_validate_end(TENREC_EOS, "init", NULL), TENREC_EOS);
}

int main(void)
{
    return testing_run(make_folder, remove_folder);
}
