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

#endif
