/* SPDX-License-Identifier: Apache-2.0 */
/* folders_test.c - the folder of the plugins that are installed with a library or a program. */
#include "core/plugin/plugin_file.h"

#include "../testing.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static const char *at(const char *below)
{
    static char path[512];

    snprintf(path, sizeof path, "%s/%s", root, below);
    return path;
}

/* Makes a folder and all above it. */
static void make_folder(const char *below)
{
    char path[512];

    snprintf(path, sizeof path, "%s", at(below));
    for (char *slash = path + strlen(root); (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    assert_int_equal(mkdir(path, 0700), 0);
}

static void make_file(const char *below)
{
    FILE *f = fopen(at(below), "w");

    assert_non_null(f);
    fclose(f);
}

static void make_root(void)
{
    strcpy(root, "/tmp/plugin_folders.XXXXXX");
    assert_non_null(mkdtemp(root));
}

static void remove_root(void)
{
    char command[128];

    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

static void must_find(const char *file, const char *below)
{
    char *found = plugin_folders_beside(at(file)), *wanted = realpath(at(below), NULL);

    assert_non_null(found);
    assert_non_null(wanted);
    assert_string_equal(found, wanted);
    free(found);
    free(wanted);
}

TEST_WITH(plugins_are_found_beside_a_library, make_root, remove_root)
{
    make_folder("lib/" TENREC_PLUGINS_BESIDE);
    make_file("lib/libtenrec.so.1.0.0");
    must_find("lib/libtenrec.so.1.0.0", "lib/" TENREC_PLUGINS_BESIDE);
    /* A link elsewhere leads to the library's own plugins. */
    make_folder("app");
    assert_int_equal(symlink("../lib/libtenrec.so.1.0.0", at("app/libtenrec.so.1")), 0);
    must_find("app/libtenrec.so.1", "lib/" TENREC_PLUGINS_BESIDE);
}

TEST_WITH(plugins_are_found_from_the_place_of_a_program, make_root, remove_root)
{
    make_folder("bin");
    make_file("bin/tenrec");
    make_folder("bin/" TENREC_PLUGINS_FROM_BIN);
    must_find("bin/tenrec", "bin/" TENREC_PLUGINS_FROM_BIN);
}

TEST_WITH(no_plugins_are_found_where_none_were_installed, make_root, remove_root)
{
    make_folder("lib/tenrec");
    make_file("lib/tenrec/plugins"); /* no folder */
    make_file("lib/libtenrec.so");
    assert_null(plugin_folders_beside(at("lib/libtenrec.so")));
    assert_null(plugin_folders_beside(at("nowhere/libtenrec.so")));
}
