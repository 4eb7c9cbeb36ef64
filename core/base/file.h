/* SPDX-License-Identifier: Apache-2.0 */
/* file.h - files and folders that only the user of this process may read. */
#ifndef TENREC_BASE_FILE_H
#define TENREC_BASE_FILE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <tenrec/error.h>
#include <tenrec/observer_plugin.h>

/* Checks which users could read the file: its owner, our user or root, alone; also a group that
 * root has chosen, as the volumes of a container runtime have it.
 *
 * what    begins the text: "secret file"
 * errors  ECONFIG, with the path and the remedy */
tenrec_status private_file_check(const char *what, const char *path, const struct stat *st,
                                 tenrec_error *err);

enum private_file_name {
    PRIVATE_FILE_NEW,   /* the program chose it: a file or link of that name is an error */
    PRIVATE_FILE_NAMED, /* the user named it: followed, and emptied */
};

/* Opens a file of mode 0600 to write to. errors: EOS; os_errno is EEXIST for a name that exists */
tenrec_status private_file_open(const char *path, enum private_file_name name, int *ret_fd,
                                tenrec_error *err);

/* The same with these contents. A new file that could not be written is removed. errors: EOS */
tenrec_status private_file_write(const char *path, enum private_file_name name, const void *data,
                                 size_t len, tenrec_error *err);

/* Writes the path of the folder in which processes of this user find files and sockets of each
 * other: $XDG_RUNTIME_DIR, /run/user/UID, or one in /tmp that is made; the first that belongs to
 * this user with mode 0700. A user that takes a name in /tmp blocks that name only.
 *
 * errors   EOS */
tenrec_status private_folder(char ret[TENREC_PRIVATE_FOLDER_MAX], tenrec_error *err);

/* The limit of file sizes of this process (RLIMIT_FSIZE, ulimit -f): growing a file
 * beyond it, also one in memory, raises SIGXFSZ in the thread, which ends the process. */

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

/* Files in memory. */

/* Makes a file in memory of `bytes` zeros that can be sealed, and never executed.
 *
 * flags    MFD_CLOEXEC or 0
 * ret      a descriptor that the caller closes
 * errors   EOS; with the limit where file sizes are limited */
tenrec_status memory_file_new(const char *name, size_t bytes, unsigned flags, int *ret,
                              tenrec_error *err);

#endif
