/* SPDX-License-Identifier: Apache-2.0 */
/* file_limit.h - the limit of file sizes of this process (RLIMIT_FSIZE, ulimit -f): growing a file
 * beyond it, also one in memory, raises SIGXFSZ in the thread, which ends the process. */
#ifndef TENREC_BASE_FILE_LIMIT_H
#define TENREC_BASE_FILE_LIMIT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <tenrec/error.h>

/* Returns OK if a file may have that size. errors: EOS, with the limit */
tenrec_status file_limit_check(uint64_t bytes, tenrec_error *err);

/* Between hold and release a write of this thread beyond the limit fails with EFBIG, and raises no
 * signal. */
struct file_limit {
    bool held, pending;
    sigset_t before;
};

void file_limit_hold(struct file_limit *l);
void file_limit_release(struct file_limit *l); /* keeps errno */

/* As tenrec_fail_errno with EOS; for EFBIG with the limit. */
TENREC_COLD
TENREC_PRINTF(3, 4)
tenrec_status file_limit_fail(tenrec_error *err, int os_errno, const char *fmt, ...);

#endif
