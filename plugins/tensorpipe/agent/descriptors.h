/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors.h - how many file descriptors an agent needs.
 *
 * A peer takes a pipe in each direction. Over rings a pipe has four connections of one
 * Unix socket each (descriptor, reply and the two of a channel) and nothing else: 8 for
 * a peer of this host. Over TCP it has two and the lanes, 6 with one lane, of which a pipe between
 * two Tenrec workers leaves out the reply. */
#ifndef TENSORPIPE_DESCRIPTORS_H
#define TENSORPIPE_DESCRIPTORS_H

struct agent;

/* Raises the soft limit of open files to what calls between this agent and `peers` peers need
 * beside all other agents of the process, if it is lower, and as far as the hard limit allows.
 * Any thread. */
void descriptors_reserve(struct agent *a, unsigned peers);

/* The agent needs none any more. The limit stays as it is. */
void descriptors_release(struct agent *a);

#endif
