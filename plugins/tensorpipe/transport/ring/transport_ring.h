/* SPDX-License-Identifier: Apache-2.0 */
/* transport_ring.h - Tenrec's own transport to a peer on the same host: rings
 * in shared memory that wake only a sleeping peer. */
#ifndef TENSORPIPE_TRANSPORT_RING_H
#define TENSORPIPE_TRANSPORT_RING_H

#include "transport/conn.h"
#include "transport/transport.h"

/* Connections begin on a socket with an abstract name, or in the folder of the option shm_dir,
 * which workers in several network namespaces may share. */
extern const struct transport transport_ring, transport_ring_dir;

/* stream_ring.c: a connection over rings in shared memory. */

/* Takes `fd`, a Unix socket. An accepted socket waits for the caller's bytes.
 * NULL: out of memory. */
struct conn *stream_ring_conn(struct endpoint *ep, const struct transport *transport, int fd,
                              const union transport_address *peer);
/* The connection is a caller's, whose socket stream_ring_reached reports. Before anything else. */
void stream_ring_calls(struct conn *c);
/* The socket of a caller is connected, or could not be: `e`. */
void stream_ring_reached(struct conn *c, int e);

/* ring_folder.c: the sockets of rings as files in a folder (option shm_dir).
 *
 * An address is the name of a file, since containers may have the folder at different paths. A
 * peer's domain shows whether it has the same folder. */

/* Whether the path may be one. The folder may be on another machine. errors: ECONFIG */
tenrec_status ring_folder_check_path(const char *folder, tenrec_error *err);

/* As the operations of struct transport. errors: ECONFIG, with what to do, if another user could
 * replace the sockets in the folder, or it is none */
tenrec_status ring_folder_listen(const struct tp_options *o, int *ret_fd,
                                 char ret_address[TRANSPORT_TEXT_MAX], tenrec_error *err);
tenrec_status ring_folder_parse(const char *text, size_t len, union transport_address *ret,
                                tenrec_error *err);

/* The path of the socket that ring_folder_parse has read, in a folder that was checked. */
void ring_folder_join(const char *folder, const union transport_address *name,
                      union transport_address *ret);

#endif
