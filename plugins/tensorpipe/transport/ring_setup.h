/* ring_setup.h - how two processes come to share a pair of rings.
 *
 * Who calls makes the memory and two bells (eventfds), and sends all three over a
 * Unix socket with one message; who listens checks them. That is all there is to
 * it: from then on the socket only tells when the other end is gone. */
#ifndef TENSORPIPE_RING_SETUP_H
#define TENSORPIPE_RING_SETUP_H

#include "transport/ring.h"

/* One end of a connection. */
struct ring_end {
    void *memory; /* NULL: there is none yet */
    size_t len;
    struct ring_writer out;
    struct ring_reader in;
    int bell;      /* the other side rings it; -1 */
    int peer_bell; /* we ring it; -1 */
};

/* `size`: of each ring. 0 or an errno. */
int ring_setup_call(int sock, uint64_t size, struct ring_end *ret);

/* 0, EAGAIN when nothing has come yet, or another errno with *ret_why, what is
 * wrong with what came. */
int ring_setup_answer(int sock, struct ring_end *ret, const char **ret_why);

/* NULL memory is fine. */
void ring_end_close(struct ring_end *e);

/* Whether the kernel lets us have such memory at all; else why not. */
bool ring_setup_viable(char why[], size_t cap);

#endif
