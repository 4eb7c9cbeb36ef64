/* SPDX-License-Identifier: Apache-2.0 */
/* shm_link.h - a connection of TensorPipe's shm transport, without its socket.
 *
 * Four rings: each side's inbox, which the other one writes, and each side's
 * reactor. Above them lies the stream that a TCP connection would carry, whose
 * frames begin with a length of 8 bytes. In the rings it has 4 bytes, so it is
 * translated on the way, wherever the reads and writes happen to cut the stream. */
#ifndef TENSORPIPE_SHM_LINK_H
#define TENSORPIPE_SHM_LINK_H

#include "transport/tp_shm/shm_handshake.h"
#include "transport/tp_shm/shm_reactor.h"

#include <sys/types.h>
#include <sys/uio.h>

#define SHM_FRAME_HEAD 8 /* bytes of a length in the stream above */
#define SHM_RING_HEAD 4  /* the same in the ring */
#define SHM_FRAME_MAX UINT32_MAX

/* libtensorpipe's own. An object must fit into the ring as a whole: an object
 * longer than the reader's ring kills a libtensorpipe process. */
#define SHM_INBOX_SIZE (UINT64_C(2) << 20)

struct shm_link {
    struct shm_ring inbox, reactor;       /* ours */
    struct shm_ring outbox, peer_reactor; /* the peer's; not mapped before shm_link_attach */
    uint32_t inbox_token, outbox_token;   /* for the peer's reactor */
    /* Tokens that found no place: any later call retries. */
    atomic_bool owes_inbox, owes_outbox;

    /* The reader's: the frame that is under way. */
    unsigned char read_head[SHM_FRAME_HEAD];
    unsigned read_head_at; /* of it was given out; SHM_FRAME_HEAD: all */
    uint64_t read_left;    /* of its body */

    /* The writer's. */
    unsigned char write_head[SHM_FRAME_HEAD];
    unsigned write_head_got;
    uint64_t write_left;
};

/* Makes our rings and says what to tell the peer of them: the descriptors in
 * *ret_hello are the caller's to close. errors: EOS, ENOMEM */
tenrec_status shm_link_init(struct shm_link *ret, struct shm_hello *ret_hello, tenrec_error *err);
/* Maps the peer's rings; its descriptors stay the caller's.
 * errors: EPROTOCOL, EOS, ENOMEM */
tenrec_status shm_link_attach(struct shm_link *l, const struct shm_hello *peer, tenrec_error *err);
/* Nothing to do for a zeroed one. */
void shm_link_finish(struct shm_link *l);

/* As readv: the bytes, -EAGAIN when there are none now, -EPROTO when the peer
 * broke the rules. One thread at a time. */
ssize_t shm_link_read(struct shm_link *l, const struct iovec *iov, int n);
/* As writev: the bytes, -EAGAIN when the ring is full, -EPROTO, -EMSGSIZE for a
 * frame beyond SHM_FRAME_MAX. One thread at a time, beside the reader. */
ssize_t shm_link_write(struct shm_link *l, const struct iovec *iov, int n);

/* Whether a read would get somewhere; for the reader. The same for the writer. */
bool shm_link_readable(const struct shm_link *l);
bool shm_link_writable(const struct shm_link *l);

/* For any thread: changes whenever the peer has written to our inbox, or taken
 * from its own. */
uint64_t shm_link_written(const struct shm_link *l);
uint64_t shm_link_taken(const struct shm_link *l);
/* Returns true if the inbox has unread bytes. */
bool shm_link_is_unread(const struct shm_link *l);
/* Bytes that we wrote and the peer did not take. */
uint64_t shm_link_unread(const struct shm_link *l);
/* Returns true if a token has found no place yet. */
bool shm_link_owes(const struct shm_link *l);

/* To be called now and then, by any thread: makes room in our reactor, and
 * pushes the tokens that we owe. */
void shm_link_tend(struct shm_link *l);

#endif
