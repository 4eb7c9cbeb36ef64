/* SPDX-License-Identifier: Apache-2.0 */
/* this_host.h - addresses that no other host can have. */
#ifndef TENREC_BASE_THIS_HOST_H
#define TENREC_BASE_THIS_HOST_H

#include <stdbool.h>

/* Returns true for "", for a Unix socket, and for a host that is loopback by its text, with or
 * without scheme and port: "uv://127.0.0.1:80", "[::1]:80", "::1", "localhost". */
bool this_host_has(const char *address);

#endif
