/* SPDX-License-Identifier: Apache-2.0 */
/* transport_local.h - abstract Unix sockets: where connections in shared memory
 * begin. The kernel chooses the unique name of a listener. */
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

#endif
