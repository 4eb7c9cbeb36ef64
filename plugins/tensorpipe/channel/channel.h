/* SPDX-License-Identifier: Apache-2.0 */
/* channel.h - how the bytes of tensors travel within a pipe.
 *
 * A channel is a name that both peers put into their Brochures. It may have
 * connections of its own, says what is written for each tensor and takes what
 * arrives. Messages whose tensors are empty do not ask it. */
#ifndef TENSORPIPE_CHANNEL_H
#define TENSORPIPE_CHANNEL_H

#include "channel/cma.h"
#include "transport/conn.h"
#include "wire/descriptor.h"

/* Progress of a part of a message. */
enum part { PART_THERE, PART_MISSING, PART_BAD };

struct incoming;
struct pipe;

struct channel {
    const char *name; /* on the wire */

    /* Connections of its own. The first `data` of them are read by the reader of the pipe, if they
     * carry the next byte of a message (read.want); what arrives on the others is for the sender of
     * tensors, and the loop thread reads it. */
    unsigned connections, data;
    /* The kind of the note of a tensor that the peer maps (shm_handoff.h); those the
     * channel is not asked to send. 0: it maps none. */
    unsigned char maps;

    /* Sending, under the pipe's lock. At most `segments` of them are needed for
     * tensor `t`; send fills them in (they are zero), counts its parts in `request` and
     * returns how many it took. `note` travels with the descriptor; an empty one
     * is what libtensorpipe sends. */
    unsigned (*segments)(const struct pipe *p, const struct tenrec_tensor_desc *t);
    unsigned (*send)(struct pipe *p, struct send_request *request,
                     const struct tenrec_tensor_desc *t, struct segment *s,
                     struct descriptor_note *note);

    /* Handles the note of a descriptor; NULL: notes are ignored. `desc` is the tensor's, with its
     * length; NULL: the message is not wanted. errors: EPROTOCOL; others: the tensor is rejected;
     * the pipe stays usable */
    tenrec_status (*announced)(struct pipe *p, struct nop_bytes note, struct incoming *in,
                               struct tenrec_tensor_desc *desc, tenrec_error *err);

    /* Receiving, by the reader of the pipe: takes the available bytes of the tensor that is being
     * read, and sets the source of the next byte (read.want, read.lead). */
    enum part (*receive)(struct pipe *p);

    /* Something arrived on a connection after the first `data`; on the loop
     * thread. NULL: there is none. */
    void (*arrived)(struct pipe *p, struct conn *c);

    /* All connections are open, and no message was sent on them: may fail the pipe. On the loop
     * thread. NULL: nothing to do. */
    void (*complete)(struct pipe *p);

    /* The pipe is established; on the loop thread. NULL: nothing to do. */
    void (*established)(struct pipe *p);
};

extern const struct channel channel_basic, channel_cma, channel_host;
/* Its connections are as many as the options say. */
extern const struct channel channel_lanes;

/* Where the tensor that is being read goes; NULL: nowhere, it is skipped. */
void *channel_target(const struct pipe *p);

/* Takes a frame of `len` bytes for `to` (NULL: nowhere) from connection `from`,
 * over several calls; read.head_got and read.got are 0 before the first. */
enum part channel_take_frame(struct pipe *p, enum conn_role from, void *to, uint64_t len);

/* Reads the tensor that is being read at `from` in that process's memory, as far
 * as it is the loop thread's turn: PART_MISSING, it goes on later by itself.
 * PART_BAD: why not is *ret_errno. */
enum part channel_pull(struct pipe *p, const struct cma_peer *peer, uint64_t from, int *ret_errno);

/* The next frame, of at most `max` bytes, on a connection that the loop thread reads; advancing
 * conn->pos takes it. Returns false if none has arrived, or the pipe is broken. */
bool channel_next_frame(struct pipe *p, struct conn *c, size_t max, const unsigned char **ret_body,
                        size_t *ret_len);

/* For channel.segments: each tensor takes one. */
unsigned channel_one_segment(const struct pipe *p, const struct tenrec_tensor_desc *t);

/* Fills `s` with a frame of `len` bytes at `data`, to be written on `on`. */
void channel_put_frame(struct segment *s, struct send_request *request, enum conn_role on,
                       void *data, uint64_t len);

#endif
