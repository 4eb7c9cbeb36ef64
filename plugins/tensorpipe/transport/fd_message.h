/* SPDX-License-Identifier: Apache-2.0 */
/* fd_message.h - bytes and file descriptors in one message over a Unix socket. Nothing here
 * blocks: whatever a peer does to its own end, the flags of each call are this side's. */
#ifndef TENSORPIPE_FD_MESSAGE_H
#define TENSORPIPE_FD_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define FD_MESSAGE_MAX 4 /* descriptors that one message of ours has */

/* The `n` descriptors stay the caller's. Returns 0 or an errno; EMSGSIZE: not all bytes had
 * room. */
int fd_message_send(int sock, const void *data, size_t len, const int *fds, unsigned n);

/* Up to `max` descriptors become the caller's; more are closed, and counted in *ret_n.
 *
 * ret_cut  the process or the message had no room for some of them
 * return   bytes, 0 at the end of the stream, or -errno
 */
ssize_t fd_message_receive(int sock, void *data, size_t len, int *fds, unsigned max,
                           unsigned *ret_n, bool *ret_cut);

#endif
