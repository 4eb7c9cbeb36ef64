/* SPDX-License-Identifier: Apache-2.0 */
/* ring_events.h - the events of a connection over rings, for the loop thread.
 *
 * Events are edges, as with sockets: `seen` is how far the peer had written at the last
 * read or the last report. The loop asks to be woken again only when it is about to sleep
 * (struct reactor_look), so that a busy loop costs its peers nothing. */
#ifndef TENSORPIPE_RING_EVENTS_H
#define TENSORPIPE_RING_EVENTS_H

#include "transport/ring/ring_medium.h"

void ring_events_init(struct ring_medium *m);

/* For struct stream. */
uint32_t ring_events(struct conn *c, uint32_t fetched);
int ring_events_hear(struct conn *c, enum conn_hears what);

#endif
