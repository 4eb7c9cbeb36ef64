/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_read.h - messages as they arrive. */
#ifndef TENSORPIPE_PIPE_READ_H
#define TENSORPIPE_PIPE_READ_H

#include "transport/conn.h"

#define MESSAGE_TENSORS_MAX 65536 /* of one message: storages, and views of them */
#define TENSORS_KEPT 256          /* so many have room between messages */

struct arriving;
struct carried;
struct pipe;
struct plain;

/* A tensor of the message that is being read. */
struct incoming {
    uint64_t len;
    uint64_t from;   /* the channel's: an address of the sender, or a place in the tensor */
    uint64_t number; /* the channel's */
    int how;         /* the channel's: its path; 0: not announced */
    bool on_device;  /* the link brings it (cuda/link/link.h) */
};

/* The message that is being read. */
struct reading {
    atomic_bool paused;              /* the host does not accept requests */
    atomic_uint_fast64_t n_messages; /* received so far */
    enum step { STEP_DESCRIPTOR, STEP_TYPE, STEP_ID, STEP_PAYLOAD, STEP_LIST, STEP_TENSORS } step;
    enum conn_role want;    /* the connection that has the next byte */
    struct tenrec_msg *msg; /* NULL: its bytes are skipped, `why` says why */
    bool skipped;
    bool unparsed;          /* the buffers may have unparsed bytes */
    unsigned turn_messages; /* of this turn: requests so far, ... */
    uint64_t turn_ns;       /* ... and its begin; 0: not read yet */
    int n_lead;
    int32_t type;
    int64_t id;
    uint64_t len[4];
    uint32_t n_tensors, n_targetless; /* with bytes of their own: storages */
    struct incoming *in;              /* n_tensors of them; owns */
    struct carried *carried;          /* likewise: which tensors of the list are views of them */
    struct arriving *arriving;        /* of tensors on devices; owns; NULL: none */
    uint32_t cap_in;
    uint32_t tensor;
    unsigned char head[FRAME_HEAD]; /* of the tensor's frame */
    size_t head_got;
    bool in_body;         /* of the payload: its header was read */
    uint64_t got;         /* bytes of the body */
    struct iovec lead[2]; /* n_lead: where the next bytes of `want` go */
    tenrec_error why;
    unsigned char begun[4]; /* of the payload of a message that was dropped, ... */
    uint32_t n_begun;       /* ... so many bytes */
    struct reactor_task task;
};

enum read_result { READ_NOTHING, READ_SOME, READ_PAUSED, READ_END };

enum read_how {
    READ_NOW,
    READ_DRAIN,   /* until the socket is empty, because no further event will report it */
    READ_WAITING, /* waits for the first bytes up to CONN_WAIT_MS */
};

/* Reads once or more and delivers all that is whole. Needs the reader's role
 * of an outgoing pipe; of an incoming one, the loop thread. */
enum read_result pipe_read(struct pipe *p, enum read_how how);
void pipe_read_finish(struct pipe *p);

/* pipe_message.c: parts of a message that is being read */

/* Parses a complete message without tensors. Returns false, consuming nothing, if the general path
 * must handle it. */
bool message_plain(struct pipe *p, const struct plain *m);
tenrec_status message_begin(struct pipe *p, const unsigned char *frame, size_t len,
                            tenrec_error *err);
/* Parses all frames up to the tensors if they are complete and valid. Returns false, consuming
 * nothing, if they must be read one by one. */
bool message_rest(struct pipe *p);
/* Asks the host for the tensors' memory, once their list has arrived. */
void message_place_tensors(struct pipe *p, const unsigned char *frame, size_t len);
/* Fills the tensors of the message, which has more of them afterwards where some share a
 * storage. errors: EPROTOCOL, EUNSUPPORTED, ETOOBIG, ENOMEM */
tenrec_status message_read_list(struct pipe *p, const unsigned char *frame, size_t len,
                                tenrec_error *err);
/* Delivers the complete message, or answers that it was rejected. */
void message_end(struct pipe *p);
/* The same for a message that is not being read any more. msg NULL: it could not be taken,
 * `why` says why. */
void message_deliver(struct pipe *p, struct tenrec_msg *msg, int32_t type, int64_t id,
                     const tenrec_error *why);

#endif
