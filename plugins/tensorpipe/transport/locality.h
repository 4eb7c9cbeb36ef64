/* SPDX-License-Identifier: Apache-2.0 */
/* locality.h - what tells whether two processes can reach each other's memory and
 * sockets: the boot of the machine, and the namespaces they live in. The texts
 * are those of TensorPipe, so that its peers compare equal. */
#ifndef TENSORPIPE_LOCALITY_H
#define TENSORPIPE_LOCALITY_H

#include <stdbool.h>

#define LOCALITY_PART_MAX 48

/* False: the machine does not tell. */
bool locality_boot_id(char buf[LOCALITY_PART_MAX]);
/* "net", "pid", "user", ...: device and inode of this process's one. */
bool locality_namespace(const char *which, char buf[LOCALITY_PART_MAX]);

#endif
