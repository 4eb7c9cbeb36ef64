/* SPDX-License-Identifier: Apache-2.0 */
/* exposure.h - the warning about a worker that any process of other hosts can call. */
#ifndef TENREC_MEETING_EXPOSURE_H
#define TENREC_MEETING_EXPOSURE_H

#include <stdbool.h>

struct security;

/* Returns true if an address that a backend advertises ("uv://10.1.0.1:4000") names an IP address
 * other than loopback. */
bool exposure_is_beyond_loopback(const char *address);

/* Logs one line in the life of the process if the worker listens beyond loopback in mode none, and
 * the configuration does not name that mode. */
void exposure_warn(const struct security *s, const char *worker, const char *address);

#endif
