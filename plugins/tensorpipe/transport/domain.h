/* SPDX-License-Identifier: Apache-2.0 */
/* domain.h - what tells whether two processes can reach each other's memory and
 * sockets: the boot of the machine, and the namespaces they live in. The texts
 * are those of TensorPipe, so that its peers compare equal. */
#ifndef TENSORPIPE_DOMAIN_H
#define TENSORPIPE_DOMAIN_H

#include <stdbool.h>

#define DOMAIN_PART_MAX 48

/* False: the machine does not tell. */
bool domain_boot_id(char buf[DOMAIN_PART_MAX]);
/* "net", "pid", "user", ...: device and inode of this process's one. */
bool domain_namespace(const char *which, char buf[DOMAIN_PART_MAX]);

#endif
