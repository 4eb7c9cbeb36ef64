/* SPDX-License-Identifier: Apache-2.0 */
/* advertise_address.h - the address that this machine advertises to a group: the one from which it
 * reaches the group's store.
 *
 * The machine's host name is not used: it often resolves to 127.0.1.1, or to an address that other
 * hosts cannot reach. */
#ifndef TENREC_MEETING_ADVERTISE_ADDRESS_H
#define TENREC_MEETING_ADVERTISE_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <tenrec/error.h>

#define ADVERTISE_ADDRESS_MAX (INET6_ADDRSTRLEN + 16)

/* Writes the address of this machine towards `host`, the host of the store; when that is this
 * machine, the first address that is not loopback. "" when the group is on this host alone (the
 * store is at a loopback address, or `host` is ""), or no address is found. Sends no packet but
 * those of the name lookup. */
void advertise_address_find(const char *host, uint16_t port, uint64_t deadline_ns,
                            char ret[ADVERTISE_ADDRESS_MAX]);

/* Returns true for "localhost", 127.x.y.z and ::1, as written. */
int advertise_address_is_loopback(const char *host);

/* The warning about a worker that any process of other hosts can call. */

struct security;

/* Returns true if an address that a backend advertises ("uv://10.1.0.1:4000") names an IP address
 * other than loopback. */
bool exposure_is_beyond_loopback(const char *address);

/* Logs one line in the life of the process if the worker listens beyond loopback in mode none, and
 * the configuration does not name that mode. */
void exposure_warn(const struct security *s, const char *worker, const char *address);

#endif
