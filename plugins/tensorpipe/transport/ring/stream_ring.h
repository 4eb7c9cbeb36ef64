/* SPDX-License-Identifier: Apache-2.0 */
/* stream_ring.h - a connection over rings in shared memory. */
#ifndef TENSORPIPE_STREAM_RING_H
#define TENSORPIPE_STREAM_RING_H

#include "transport/conn.h"

/* Takes `fd`, a Unix socket. An accepted socket waits for the caller's bytes.
 * NULL: out of memory. */
struct conn *stream_ring_conn(struct endpoint *ep, const struct transport *transport, int fd,
                              const union transport_address *peer);
/* The connection is a caller's, whose socket stream_ring_reached reports. Before anything else. */
void stream_ring_calls(struct conn *c);
/* The socket of a caller is connected, or could not be: `e`. */
void stream_ring_reached(struct conn *c, int e);

#endif
