/* SPDX-License-Identifier: Apache-2.0 */
/* ring_opening.h - how a connection over rings opens: its socket connects, the caller sends
 * the memory, the listener answers. All of it on the loop thread. */
#ifndef TENSORPIPE_RING_OPENING_H
#define TENSORPIPE_RING_OPENING_H

#include "transport/ring/ring_medium.h"

/* The caller's next step, after these events of the socket. Returns events of the connection. */
uint32_t ring_opening_caller(struct ring_medium *m, uint32_t fetched);
/* The listener's: the memory may have come. */
void ring_opening_listener(struct ring_medium *m);

/* Begins to watch the socket, or leaves that to stream_ring_reached. Returns 0 or an errno. */
int ring_opening_watch(struct ring_medium *m);

#endif
