/* SPDX-License-Identifier: Apache-2.0 */
/* shm_wire.h - a peer's end of connections over shm, driven by hand. */
#ifndef TENSORPIPE_TEST_SHM_WIRE_H
#define TENSORPIPE_TEST_SHM_WIRE_H

#include "transport/tp_shm/shm_link.h"

struct wire {
    int fd;
    struct shm_link link;
};

/* Exchanges rings over a connected socket, which it takes. */
void wire_open(struct wire *w, int fd);
void wire_close(struct wire *w);

/* Writes a stream of frames with heads of 8 bytes; all of it must fit. */
void wire_send(struct wire *w, const void *data, size_t len);
/* Reads exactly `len` bytes of such a stream, within the limit. */
void wire_receive(struct wire *w, void *data, size_t len);

/* The hello of a connection that was asked for: ours, and the other side's. */
void wire_request(struct wire *w, uint64_t id);
uint64_t wire_requested(struct wire *w);

#endif
