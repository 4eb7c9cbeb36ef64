/* SPDX-License-Identifier: Apache-2.0 */
/* dial.h - a TCP connection to a Redis server, within a deadline. */
#ifndef REDIS_DIAL_H
#define REDIS_DIAL_H

#include "conn.h"

/* Connects to the first address of the host that answers. *ret_fd: a non-blocking socket */
enum conn_end dial_open(const struct redis_url *url, uint64_t deadline_ns, int *ret_fd,
                        tenrec_error *err);

/* Waits until the socket is ready. CONN_LATE has no error text. */
enum conn_end dial_await(int fd, short events, uint64_t deadline_ns, tenrec_error *err);

#endif
