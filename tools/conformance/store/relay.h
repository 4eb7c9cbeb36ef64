/* SPDX-License-Identifier: Apache-2.0 */
/* relay.h - a port of this host between a client and a server: its owner is the network that fails.
 */
#ifndef TENREC_TOOLS_CONFORMANCE_RELAY_H
#define TENREC_TOOLS_CONFORMANCE_RELAY_H

#include <stdbool.h>
#include <stdint.h>

struct relay;

/* Takes a port of 127.0.0.1, on which nothing listens yet: it refuses connections.
 *
 * to    borrowed: the numeric address of the server, "10.0.0.3:6379", "[fd00::1]:6379" */
struct relay *relay_new(const char *to);
void relay_drop(struct relay *r);
uint16_t relay_port(const struct relay *r);

/* Lets clients connect, and carries their bytes. */
void relay_listen(struct relay *r);
/* Keeps the connections, and carries nothing more. */
void relay_freeze(struct relay *r);
/* Breaks all connections, and refuses new ones until relay_listen. */
void relay_cut(struct relay *r);
/* Breaks all connections; a new one is carried at once. */
void relay_break(struct relay *r);

/* Splits a numeric address. Returns false if it is none: an address with a port from 1 to 65535. */
struct sockaddr_storage;
bool relay_address(const char *text, struct sockaddr_storage *ret, unsigned *ret_len);

#endif
