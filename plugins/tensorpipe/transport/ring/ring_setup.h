/* SPDX-License-Identifier: Apache-2.0 */
/* ring_setup.h - how two processes set up a shared pair of rings.
 *
 * The caller makes the memory and sends its descriptor over a Unix socket; the listener checks and
 * maps that memory, and answers with one byte: taken, or why not. From then on the socket carries
 * bells, and closes when the other end is gone. */
#ifndef TENSORPIPE_RING_SETUP_H
#define TENSORPIPE_RING_SETUP_H

#include "transport/ring/ring.h"

/* One end of a connection. */
struct ring_end {
    void *memory; /* NULL: there is none yet */
    size_t len;
    struct ring_writer out;
    struct ring_reader in;
};

/* The listener's answer to the memory. */
enum ring_answer { RING_TAKEN, RING_NO_DESCRIPTOR, RING_NO_MEMORY, RING_MALFORMED };

/* Bytes of the memory for two rings of `size` bytes. */
size_t ring_setup_bytes(uint64_t size);

/* The caller sends the memory. Returns 0 or an errno.
 *
 * size     of each ring */
int ring_setup_call(int sock, uint64_t size, struct ring_end *ret);
/* The caller reads the answer to it. Returns 0; EAGAIN while there is none; another errno
 * with the reason in *ret_why. */
int ring_setup_answered(int sock, const char **ret_why);

/* The listener takes the memory, and answers. Returns 0; EAGAIN while nothing has arrived; another
 * errno with the reason in *ret_why. */
int ring_setup_take(int sock, struct ring_end *ret, const char **ret_why);

/* NULL memory is fine. */
void ring_end_close(struct ring_end *e);

#endif
