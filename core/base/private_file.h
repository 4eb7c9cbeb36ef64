/* SPDX-License-Identifier: Apache-2.0 */
/* private_file.h - files and folders that only the user of this process may read. */
#ifndef TENREC_BASE_PRIVATE_FILE_H
#define TENREC_BASE_PRIVATE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
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

/* Calls `fn` for each folder in which a process of this user with other variables would look, until
 * it returns true. */
void private_folder_each(bool (*fn)(void *arg, const char *folder), void *arg);

#endif
