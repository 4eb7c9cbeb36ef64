/* SPDX-License-Identifier: Apache-2.0 */
/* stream_socket.h - the bytes of a connection over a socket. */
#ifndef TENSORPIPE_STREAM_SOCKET_H
#define TENSORPIPE_STREAM_SOCKET_H

#include "transport/stream.h"

extern const struct stream stream_socket;

#endif
