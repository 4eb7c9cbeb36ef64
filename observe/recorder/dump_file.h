/* SPDX-License-Identifier: Apache-2.0 */
/* dump_file.h - dumps that a process writes by itself. */
#ifndef TENREC_RECORDER_DUMP_FILE_H
#define TENREC_RECORDER_DUMP_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <tenrec/error.h>

enum { DUMP_PATH_MAX = PATH_MAX, DUMP_PAUSE_S = 60 };

/* Returns true at most once in DUMP_PAUSE_S. */
bool dump_file_due(uint64_t now_ns);

/* Writes the trace of this process into a new file of mode 0600 of that folder, named after the
 * worker, the process and the time.
 *
 * ret      its path
 * errors   EOS, ENOMEM */
tenrec_status dump_file_write(const char *folder, const char *worker,
                              char ret[static DUMP_PATH_MAX], tenrec_error *err);

#endif
