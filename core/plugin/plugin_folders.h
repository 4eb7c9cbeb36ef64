/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_folders.h - where plugins are looked for. */
#ifndef TENREC_PLUGIN_PLUGIN_FOLDERS_H
#define TENREC_PLUGIN_PLUGIN_FOLDERS_H

#include <stdbool.h>

/* Calls fn for each folder of the search until it returns true, first those of TENREC_PLUGIN_PATH
 * (colons between), then that of the installed plugins. The first call warns of folders into which
 * other users can put plugins. */
void plugin_folders_each(bool (*fn)(void *arg, const char *folder), void *arg);

/* Finds the folder of the plugins that are installed with a file, the library or a program that
 * contains it, wherever both have been moved: TENREC_PLUGINS_BESIDE it, else
 * TENREC_PLUGINS_FROM_BIN of it. file: its path, absolute. Returns NULL if neither exists; else
 * the caller frees. */
char *plugin_folders_beside(const char *file);

#endif
