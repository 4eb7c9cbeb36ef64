/* SPDX-License-Identifier: Apache-2.0 */
/* memory_file.h - files in memory. */
#ifndef TENREC_BASE_MEMORY_FILE_H
#define TENREC_BASE_MEMORY_FILE_H

#include <stddef.h>
#include <tenrec/error.h>

/* Makes a file in memory of `bytes` zeros that can be sealed, and never executed.
 *
 * flags    MFD_CLOEXEC or 0
 * ret      a descriptor that the caller closes
 * errors   EOS; with the limit where file sizes are limited */
tenrec_status memory_file_new(const char *name, size_t bytes, unsigned flags, int *ret,
                              tenrec_error *err);

#endif
