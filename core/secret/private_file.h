/* SPDX-License-Identifier: Apache-2.0 */
/* private_file.h - files that only the user of this process may read. */
#ifndef TENREC_SECRET_PRIVATE_FILE_H
#define TENREC_SECRET_PRIVATE_FILE_H

#include <sys/stat.h>
#include <tenrec/error.h>

/* Checks which users could read the file: its owner, our user or root, alone; also a group that
 * root has chosen, as the volumes of a container runtime have it.
 *
 * what    begins the text: "secret file"
 * errors  ECONFIG, with the path and the remedy */
tenrec_status private_file_check(const char *what, const char *path, const struct stat *st,
                                 tenrec_error *err);

#endif
