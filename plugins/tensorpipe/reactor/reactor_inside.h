/* SPDX-License-Identifier: Apache-2.0 */
/* reactor_inside.h - between the two parts of the reactor: reactor.c runs the loop,
 * leader_follower.c selects the thread. */
#ifndef TENSORPIPE_REACTOR_INSIDE_H
#define TENSORPIPE_REACTOR_INSIDE_H

#include "reactor/reactor.h"

/* Sleeps for up to `ns` until an event, and handles all events and tasks. */
void reactor_round(struct reactor *r, uint64_t ns);

/* Prepares for a time without a leader, in which all events but timers must show in the epoll set.
 * Returns false if some do not, or an event is pending. */
bool reactor_rest(struct reactor *r);

/* Makes a sleeping or resting loop poll again. */
void reactor_wake(struct reactor *r);

/* For a source that is an eventfd, and only there to wake. */
void reactor_read_away(struct reactor_source *s, uint32_t events);

void reactor_guests_init(struct reactor_guests *g);
void reactor_guests_finish(struct reactor_guests *g);

/* The own thread: gives the lead to the guest that wants it, and has it back when
 * this returns. */
void reactor_let_guest(struct reactor *r);

#endif
