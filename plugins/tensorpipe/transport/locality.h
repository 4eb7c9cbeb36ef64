/* SPDX-License-Identifier: Apache-2.0 */
/* locality.h - decides whether two processes can reach each other's memory and
 * sockets: by the boot of the machine, and their namespaces. The texts
 * are those of TensorPipe, so that its peers compare equal. */
#ifndef TENSORPIPE_LOCALITY_H
#define TENSORPIPE_LOCALITY_H

#include <stdbool.h>
#include <stddef.h>

#define LOCALITY_PART_MAX 48

/* The first line of a file of the system, without its end. Returns false if there is none. */
bool locality_line(const char *path, char *ret, size_t cap);
/* Returns false if the machine has none. */
bool locality_boot_id(char buf[LOCALITY_PART_MAX]);
/* Device and inode of a file. Returns false if there is none. */
bool locality_file(const char *path, char buf[LOCALITY_PART_MAX]);
/* "net", "pid", "user", ...: device and inode of this process's one. */
bool locality_namespace(const char *which, char buf[LOCALITY_PART_MAX]);

#endif
