/* SPDX-License-Identifier: Apache-2.0 */
/* socket_owner.h - whose the other end of a TCP connection is, if it is on this host.
 *
 * The kernel is asked: what a peer says of itself needs a witness. */
#ifndef TENSORPIPE_SOCKET_OWNER_H
#define TENSORPIPE_SOCKET_OWNER_H

#include <stdbool.h>
#include <sys/types.h>

/* Returns true if process `pid` holds the other end. */
bool socket_is_held_by(pid_t pid, int fd);
/* Returns true if the other end is on this host, and our user's. */
bool socket_is_our_users(int fd);

#endif
