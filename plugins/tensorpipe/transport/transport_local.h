/* SPDX-License-Identifier: Apache-2.0 */
/* transport_local.h - abstract Unix sockets, where connections in shared memory
 * begin, and that memory. The kernel chooses the unique name of a listener. */
#ifndef TENSORPIPE_TRANSPORT_LOCAL_H
#define TENSORPIPE_TRANSPORT_LOCAL_H

#include "transport/transport.h"

/* As the operations of struct transport. */
tenrec_status local_listen(const struct tp_options *o, int *ret_fd,
                           char ret_address[TRANSPORT_TEXT_MAX], tenrec_error *err);
tenrec_status local_parse(const char *text, size_t len, union transport_address *ret,
                          tenrec_error *err);

/* 0 or an errno; EAGAIN: the listener has too many to accept. */
int local_connect(int fd, const union transport_address *to);

/* The process at the other end, as the kernel says; returns false if it runs
 * as another user, except root: such a process could attack through shared memory. */
bool local_peer_is_ours(int fd, pid_t *ret_pid);

/* Makes a file in memory whose size no process can change, so that no mapping faults. Returns its
 * descriptor, or -1 and sets errno. */
int local_memory_new(const char *name, size_t bytes);

#endif
