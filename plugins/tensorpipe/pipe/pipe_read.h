/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_read.h - messages as they arrive. */
#ifndef TENSORPIPE_PIPE_READ_H
#define TENSORPIPE_PIPE_READ_H

#include "transport/conn.h"

#define MESSAGE_TENSORS_MAX 65536          /* of one message: storages, and views of them */
#define TENSORS_KEPT 256                   /* so many have room between messages */
#define WAITING_MAX 64                     /* messages of a pipe that wait for their tensors, ... */
#define WAITING_BYTES (UINT64_C(64) << 20) /* ... and the bytes of them that are there */

struct arriving;
struct brief;
struct carried;
struct pipe;
struct plain;

/* A tensor of an arriving message. */
struct incoming {
    uint64_t len;
    uint64_t from;   /* the channel's: an address of the sender, or a place in the tensor */
    uint64_t number; /* the channel's */
    int how;         /* the channel's: its path; 0: not announced */
    bool on_device;  /* the link brings it (cuda/link/link.h) */
    bool behind;     /* its frame follows those of the message, on the descriptor connection */
};

/* A message that arrives: its frames come on the descriptor connection, and its tensors perhaps
 * later on others. */
struct arrival {
    struct tenrec_msg *msg; /* NULL: its bytes are skipped, `why` says why */
    bool skipped;
    bool placed; /* the host has given its tensors memory, or refused to */
    int32_t type;
    int64_t id;
    uint32_t n_tensors; /* with bytes of their own: storages */
    uint32_t tensor;    /* that is read next */
    uint32_t cap;       /* of the next two, which it owns */
    struct incoming *in;
    struct carried *carried;   /* which tensors of the list are views of them */
    struct arriving *arriving; /* of tensors on devices; owns; NULL: none */
    tenrec_error why;
    unsigned char begun[4]; /* of the payload of a message that was dropped, ... */
    uint32_t n_begun;       /* ... so many bytes */
    uint64_t counted;       /* in reading.waiting_bytes */
    struct arrival *next;
};

/* Where the next bytes come from, and where they go. */
struct intake {
    struct arrival *of;
    enum conn_role want; /* the connection that has the next byte */
    bool dry;            /* it had no more when it was read last, ... */
    bool ended;          /* ... and never will */
    bool more;           /* the channel goes on without a byte of it */
    int n_lead;
    struct iovec lead[2]; /* n_lead: memory for the next bytes of `want` */
    unsigned char head[FRAME_HEAD];
    size_t head_got; /* bytes of the frame's head ... */
    uint64_t got;    /* ... and of its body */
};

/* The frames of messages are read in their order. A message whose tensors are not there then waits
 * for them, in the same order, while later messages are read: they may overtake it. */
struct reading {
    atomic_bool paused;              /* the host does not accept requests */
    atomic_uint_fast64_t n_messages; /* received so far */
    enum step { STEP_DESCRIPTOR, STEP_TYPE, STEP_ID, STEP_PAYLOAD, STEP_LIST, STEP_BEHIND } step;
    bool unparsed;          /* the buffers may have unparsed bytes */
    bool more;              /* the turn has ended, and there is more to read */
    unsigned turn_messages; /* of this turn: requests so far, ... */
    uint64_t turn_ns;       /* ... and its begin; 0: not read yet */
    uint64_t len[4];
    uint32_t n_targetless;
    struct arrival now;                     /* whose frames are read */
    struct intake front;                    /* of `now`: the descriptor connection */
    struct intake back;                     /* of waiting: the connections of the channel */
    struct arrival *waiting, *last_waiting; /* for their tensors; owned */
    unsigned n_waiting;
    uint64_t waiting_bytes; /* that all but the first hold */
    struct arrival *spare;  /* for the next message that waits */
    unsigned char begun[4]; /* as an arrival's, of the message that is delivered */
    uint32_t n_begun;
    struct reactor_task task;
};

enum parsed { PARSED_ALL, PARSED_TURN, PARSED_PAUSED, PARSED_BAD };

enum read_result { READ_NOTHING, READ_SOME, READ_PAUSED, READ_END };

enum read_how {
    READ_NOW,
    READ_DRAIN,   /* until the socket is empty, because no further event will report it */
    READ_WAITING, /* waits for the first bytes up to CONN_WAIT_MS */
};

/* Returns true if the messages that wait for their tensors are so many that no other is begun. */
static inline bool reading_is_behind(const struct reading *r, bool stranger)
{
    return r->n_waiting &&
           (stranger || r->n_waiting >= WAITING_MAX || r->waiting_bytes >= WAITING_BYTES);
}

/* The next tensor or payload may come on another connection. */
static inline void intake_next(struct intake *t)
{
    t->head_got = 0;
    t->got = 0;
}

/* Reads once or more and delivers all that is whole. Needs the reader's role
 * of an outgoing pipe; of an incoming one, the loop thread. */
enum read_result pipe_read(struct pipe *p, enum read_how how);
/* pipe_arrival.c: frees what has not been delivered */
void pipe_read_finish(struct pipe *p);

/* pipe_turn.c: the turn of this pipe is over */
bool reading_turn_is_over(struct reading *r);
/* Returns true if the next request of an incoming pipe may be delivered. */
bool reading_may_go_on(struct pipe *p);
/* PARSED_ALL: the next message may be read. */
enum parsed reading_may_begin(struct pipe *p);

/* pipe_frames.c: consumes all complete buffers of the descriptor connection. */
enum parsed reading_parse(struct pipe *p);

/* pipe_message.c: parts of a message that is being read */

/* Parses a complete message without tensors. Returns false, consuming nothing, if the general path
 * must handle it. */
bool message_plain(struct pipe *p, const struct plain *m);
/* The same for a message that has no other form: drops it, if it must be. */
void message_brief(struct pipe *p, const struct plain *m);
/* A brief message up to its tensors. errors: as message_begin */
tenrec_status message_brief_tensors(struct pipe *p, const struct brief *b, tenrec_error *err);
tenrec_status message_begin(struct pipe *p, const unsigned char *frame, size_t len,
                            tenrec_error *err);
/* Parses all frames up to the tensors if they are complete and valid. Returns false, consuming
 * nothing, if they must be read one by one. */
bool message_rest(struct pipe *p);
/* Takes the list of tensors, once it has arrived. */
void message_take_list(struct pipe *p, const unsigned char *frame, size_t len);
/* Asks the host for the tensors' memory. */
void message_place_tensors(struct pipe *p, struct arrival *a);
/* Fills the tensors of the message, which has more of them afterwards where some share a
 * storage. errors: EPROTOCOL, EUNSUPPORTED, ETOOBIG, ENOMEM */
tenrec_status message_read_list(struct pipe *p, const unsigned char *frame, size_t len,
                                tenrec_error *err);
/* Delivers the complete message, or answers that it was rejected. */
void message_end(struct pipe *p, struct arrival *a);
/* The same for a message that is not being read any more. msg NULL: it could not be taken,
 * `why` says why. */
void message_deliver(struct pipe *p, struct tenrec_msg *msg, int32_t type, int64_t id,
                     const tenrec_error *why);

/* pipe_arrival.c: messages that wait for their tensors */

/* The frames of the message have been read. Returns false, failing the pipe, if memory is
 * exhausted. */
bool arrival_settle(struct pipe *p);
/* Reads the tensors of those that wait, as far as their bytes are there, and delivers what is
 * whole. */
enum parsed arrival_fill(struct pipe *p);

#endif
