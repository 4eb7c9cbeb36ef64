/* SPDX-License-Identifier: Apache-2.0 */
/* transport_local.h - Unix sockets, where connections in shared memory begin, and that
 * memory. Without a folder the names are abstract, and the kernel chooses a listener's. */
#ifndef TENSORPIPE_TRANSPORT_LOCAL_H
#define TENSORPIPE_TRANSPORT_LOCAL_H

#include "transport/transport.h"

/* As the operations of struct transport. */
tenrec_status local_listen(const struct tp_options *o, int *ret_fd,
                           char ret_address[TRANSPORT_TEXT_MAX], tenrec_error *err);
tenrec_status local_parse(const char *text, size_t len, union transport_address *ret,
                          tenrec_error *err);

/* Listens at `at`; a path becomes a file of mode 0600. Returns 0 or an errno. */
int local_open(const struct sockaddr_un *at, socklen_t len, int *ret_fd);
/* Removes the file of a listening socket, if it has one. */
void local_unlink(int fd);

/* 0 or an errno; EAGAIN: the listener has too many to accept. */
int local_connect(int fd, const union transport_address *to);
/* Connects `c`, and finds out its process. 0 or an errno; EPERM: it is another user's; EAGAIN: as
 * above, and the timer of `c` fires in `retry_ns`; ETIMEDOUT: it did so for long enough. */
int local_reach(struct conn *c, uint64_t retry_ns);

/* The process at the other end, as the kernel says; returns false if it runs
 * as another user, except root: such a process could attack through shared memory. */
bool local_peer_is_ours(const struct endpoint *ep, int fd, pid_t *ret_pid);

/* Receive and send without blocking. Return the bytes, or -errno. */
ssize_t local_receive(int sock, void *to, size_t len);
ssize_t local_send(int sock, const void *data, size_t len);

/* Makes a file in memory whose size no process can change, so that no mapping faults. Returns its
 * descriptor, or -1 and sets errno. */
int local_memory_new(const char *name, size_t bytes);
/* Returns true if a file of that size can be made; else says why not. */
bool local_memory_viable(size_t bytes, char why[], size_t cap);
/* The limit of file sizes of this process (ulimit -f); UINT64_MAX: none. */
uint64_t local_file_limit(void);

/* fd_message.c: bytes and file descriptors in one message over a Unix socket. Nothing here
 * blocks: whatever a peer does to its own end, the flags of each call are this side's. */

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

/* locality.c: decides whether two processes can reach each other's memory and
 * sockets: by the boot of the machine, and their namespaces. The texts
 * are those of TensorPipe, so that its peers compare equal. */

#define LOCALITY_PART_MAX 48

/* The first line of a file of the system, without its end. Returns false if there is none. */
bool locality_line(const char *path, char *ret, size_t cap);
/* Returns false if the machine has none. */
bool locality_boot_id(char buf[LOCALITY_PART_MAX]);
/* Device and inode of a file. Returns false if there is none. */
bool locality_file(const char *path, char buf[LOCALITY_PART_MAX]);
/* "net", "pid", "user", ...: device and inode of this process's one. */
bool locality_namespace(const char *which, char buf[LOCALITY_PART_MAX]);

/* socket_owner.c: whose the other end of a TCP connection is, if it is on this host.
 *
 * The kernel is asked: what a peer says of itself needs a witness. */

/* Returns true if process `pid` holds the other end. */
bool socket_is_held_by(pid_t pid, int fd);
/* Returns true if the other end is on this host, and our user's. */
bool socket_is_our_users(int fd);

#endif
