/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_file.h - the files of plugins: where they are, what they say before they are loaded, and
 * their loading. loader.c is the only user of dlopen. */
#ifndef TENREC_PLUGIN_PLUGIN_FILE_H
#define TENREC_PLUGIN_PLUGIN_FILE_H

#include "core/plugin/plugin.h"

#include <stdbool.h>
#include <stdint.h>
#include <tenrec/error.h>
#include <tenrec/observer_plugin.h>
#include <tenrec/store_plugin.h>

/* Returns true for a word with a '/' in it or ".so" at its end. */
bool loader_is_path(const char *name_or_path);

/* Finds the file of plugin `name`: the first <name>.so in the folders of
 * plugin_folders_each. The caller frees *ret. errors: EPLUGIN (names the searched folders and a
 * plugin of a similar name), ENOMEM */
tenrec_status loader_find(const char *name, char **ret, tenrec_error *err);

/* Maps the file and checks it as a plugin of `kind`, or of any kind for
 * PLUGIN_KIND_ANY; none of the plugin's functions is called. A setuid or setgid program maps only
 * plugins with the flag TENREC_PLUGIN_SETUID. errors: EPLUGIN, EABI, ENOMEM */
tenrec_status loader_open(const char *path, int kind, struct loaded *ret, tenrec_error *err);

/* Releases the file. It is unmapped only if the plugin allows that
 * (TENREC_PLUGIN_UNLOADABLE) and TENREC_DLCLOSE=0, with which tools can still name
 * its frames, is not set. */
void loader_close(struct loaded *l);

/* Calls fn for each plugin file that loader_find could find, with its name
 * and path, in the order of the search. */
void loader_list(void (*fn)(void *arg, const char *name, const char *path), void *arg);

/* The description in the file of a plugin that is not loaded: loading a file runs its constructors,
 * and those of the libraries that it needs. */

/* Reads the flags (enum tenrec_plugin_flags) from the ELF file `fd`, which may have any contents.
 *
 * errors   EPLUGIN (no plugin for this processor, or without a table of its symbols) */
tenrec_status plugin_file_flags(int fd, uint32_t *ret, tenrec_error *err);

/* Returns EPLUGIN, with both names, if the file is for another processor than this program. The
 * dynamic linker of glibc calls such a file missing, and that of musl loads it. */
tenrec_status plugin_file_machine(int fd, tenrec_error *err);

/* Finds an exported symbol that no plugin needs, and copies the begin of its name; "" if there is
 * none, or if the file has no table of its symbols. Names that begin with an underscore belong to
 * compilers, and weak symbols to headers of C++. */
enum { PLUGIN_SYMBOL_MAX = 64 };
void plugin_file_stray(int fd, char ret[PLUGIN_SYMBOL_MAX]);

/* Where plugins are looked for. */

/* Calls fn for each folder of the search until it returns true, first those of TENREC_PLUGIN_PATH
 * (colons between), then that of the installed plugins. The first call warns of folders into which
 * other users can put plugins. */
void plugin_folders_each(bool (*fn)(void *arg, const char *folder), void *arg);

/* Finds the folder of the plugins that are installed with a file, the library or a program that
 * contains it, wherever both have been moved: TENREC_PLUGINS_BESIDE it, else
 * TENREC_PLUGINS_FROM_BIN of it. file: its path, absolute. Returns NULL if neither exists; else
 * the caller frees. */
char *plugin_folders_beside(const char *file);

/* A file that this process has mapped, and its build id: which build of it runs. */

enum { BUILD_ID_MAX = 129 };

struct mapped_file {
    const char *path;            /* borrowed while it is mapped; "" for the program itself */
    char build_id[BUILD_ID_MAX]; /* in hexadecimal digits, as `readelf -n` prints it; "": none */
};

/* Finds the file by an address inside of it. */
void mapped_file_find(const void *inside, struct mapped_file *ret);

#endif
