/* SPDX-License-Identifier: Apache-2.0 */
/* shm_handshake.h - how two peers of the shm transport exchange their rings.
 *
 * Over the Unix stream socket of a connection each side sends one message, at
 * once and without waiting for the other's: two tokens of four bytes, and four
 * descriptors. Nothing follows it; from then on the socket only shows that the
 * other side is alive. */
#ifndef TENSORPIPE_SHM_HANDSHAKE_H
#define TENSORPIPE_SHM_HANDSHAKE_H

#include "transport/tp_shm/shm_ring.h"

/* Where the files of a side's rings stand among its descriptors. */
enum { SHM_HELLO_REACTOR = 0, SHM_HELLO_INBOX = SHM_FILES, SHM_HELLO_FDS = 2 * SHM_FILES };

/* The message of one side. A peer that wrote to its inbox pushes the inbox token into its
 * reactor; a peer that read from its outbox pushes the outbox token. */
struct shm_hello {
    uint32_t inbox_token, outbox_token;
    int fd[SHM_HELLO_FDS];
};

/* The descriptors stay the caller's. 0 or an errno. */
int shm_hello_send(int fd, const struct shm_hello *hello);

/* The descriptors become the caller's. 0, EAGAIN (it is not there yet),
 * ECONNRESET (the peer has closed), EPROTO (it is no such message), EMFILE (no
 * room for its descriptors, or there are too many), another errno. */
int shm_hello_receive(int fd, struct shm_hello *ret);

/* Closes the descriptors that are there. */
void shm_hello_close(struct shm_hello *hello);

#endif
