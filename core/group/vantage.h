/* SPDX-License-Identifier: Apache-2.0 */
/* vantage.h - which of its addresses this machine has for the members of a
 * group: the one from which it reaches the group's store.
 *
 * What the own host name resolves to is often 127.0.1.1, or an address that
 * others cannot reach, so it is not asked. */
#ifndef TENREC_GROUP_VANTAGE_H
#define TENREC_GROUP_VANTAGE_H

#include <netinet/in.h>
#include <stdint.h>
#include <tenrec/error.h>

#define VANTAGE_MAX (INET6_ADDRSTRLEN + 16)

/* Writes the address of this machine towards `host`, where the store is; when
 * that is ourselves, as its name says, the first address that is not loopback.
 * "" when nobody but this host needs to reach us (the store is at a loopback
 * address, or `host` is ""), or nothing can be found. Sends nothing, but names
 * are looked up. */
void vantage_find(const char *host, uint16_t port, uint64_t deadline_ns, char ret[VANTAGE_MAX]);

/* "localhost", 127.x.y.z or ::1, as written. */
int vantage_is_loopback(const char *host);

#endif
