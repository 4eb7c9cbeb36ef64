/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_file.h - the description in the file of a plugin that is not loaded: loading a file runs
 * its constructors, and those of the libraries that it needs. */
#ifndef TENREC_PLUGIN_PLUGIN_FILE_H
#define TENREC_PLUGIN_PLUGIN_FILE_H

#include <stdint.h>
#include <tenrec/error.h>

/* Reads the flags (enum tenrec_plugin_flags) from the ELF file `fd`, which may have any contents.
 *
 * errors   EPLUGIN (no plugin for this processor, or without a table of its symbols) */
tenrec_status plugin_file_flags(int fd, uint32_t *ret, tenrec_error *err);

/* Returns EPLUGIN, with both names, if the file is for another processor than this program. The
 * dynamic linker calls such a file missing. */
tenrec_status plugin_file_machine(int fd, tenrec_error *err);

/* Finds an exported symbol that no plugin needs, and copies the begin of its name; "" if there is
 * none, or if the file has no table of its symbols. Names that begin with an underscore belong to
 * compilers, and weak symbols to headers of C++. */
enum { PLUGIN_SYMBOL_MAX = 64 };
void plugin_file_stray(int fd, char ret[PLUGIN_SYMBOL_MAX]);

#endif
