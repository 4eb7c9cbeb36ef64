/* SPDX-License-Identifier: Apache-2.0 */
/* send_request.h - a message on its way out of a pipe, and its completions.
 *
 * A send request is one message or object, or several small messages together. The
 * writer collects completions under the pipe's lock and calls them without it. */
#ifndef TENSORPIPE_SEND_REQUEST_H
#define TENSORPIPE_SEND_REQUEST_H

#include "transport/conn.h"

#include <tenrec/agent.h>

#define SEND_REQUEST_DONES 64
#define SEND_REQUEST_LEAN 1024 /* cap of one for a message with a tensor or two */
#define SEND_REQUEST_OPEN 4096 /* cap of one for several small messages */
#define BUNDLE_CAP 16384       /* bytes that are written together at most */
#define SEND_REQUEST_FEW 4

struct descriptor_note;
struct pipe;

/* One message or object, or several small messages
 * whose frames lie one after the other in buf. */
struct send_request {
    struct send_request *next;
    struct tenrec_msg *msg;               /* released when it is written; NULL: was copied */
    uint64_t charge;                      /* counted in queue.bytes */
    uint32_t parts;                       /* segments that are not written yet */
    struct segment *tensors;              /* owns, unless it is `few`; NULL without tensors */
    uint32_t n_tensors;                   /* segments there */
    struct segment few[SEND_REQUEST_FEW]; /* for messages with few tensors */
    struct segment frames;
    size_t cap, len;    /* of buf; others may be appended up to cap */
    unsigned char *buf; /* behind `done` */
    bool large;         /* its tensors count in queue.large */
    bool open;          /* further small messages may be appended */
    bool pinned;        /* its peer maps tensors, or the link lends them: it cannot be withdrawn */
    unsigned n_done, cap_done;
    struct tenrec_done done[]; /* completions of senders that want one */
};

/* Requests that are kept for the next messages. */
struct send_request_spares {
    struct send_request *first;
    unsigned n;
};

struct send_request_list {
    struct send_request *first, **last;
};

/* Small messages that are written together, in the sender's memory. */
struct bundle {
    size_t len;
    unsigned n_done;
    unsigned n_messages;
    struct tenrec_done done[SEND_REQUEST_DONES];
    unsigned char buf[BUNDLE_CAP];
};

static inline void bundle_clear(struct bundle *b)
{
    b->len = b->n_done = b->n_messages = 0;
}

/* Completions, collected under the lock and called without it. */
struct told {
    unsigned n_done, n_msg;
    struct tenrec_done done[2 * SEND_REQUEST_DONES];
    struct tenrec_msg *msg[8];
    struct send_request_list rest; /* what did not fit */
};

/* All with the pipe's lock, but told_tell and bundle_tell. */

/* For one message or object, with room for `need` bytes at least; NULL: no memory. */
struct send_request *send_request_new(struct pipe *p, size_t need);
/* The same for small messages, charged with what it holds beside them. */
struct send_request *send_request_new_open(struct pipe *p, size_t need);
/* No more of them follow: charged with the room that is left, too. */
void send_request_close(struct pipe *p, struct send_request *request);
/* Bytes that `request` takes itself, without what its buffer has. */
size_t send_request_overhead(const struct send_request *request);
void send_request_free(struct pipe *p, struct send_request *request);
void send_request_drop_spares(struct pipe *p);
void send_request_list_add(struct send_request_list *l, struct send_request *request);
void send_request_add_done(struct pipe *p, struct send_request *request, struct tenrec_done done);
/* Appends the bytes of `b` from there on, for which there is room, and its completions. */
void send_request_fill(struct pipe *p, struct send_request *request, const struct bundle *b,
                       size_t from);
/* All of it is written, or will never be. */
void send_request_retire(struct pipe *p, struct send_request *request, struct told *t);

/* The last segment of a request that is done with ends it. */
static inline void segment_written(struct pipe *p, struct segment *s, struct told *t)
{
    if (--s->request->parts == 0)
        send_request_retire(p, s->request, t);
}

static inline void told_init(struct told *t)
{
    t->n_done = t->n_msg = 0;
    t->rest.first = NULL;
    t->rest.last = &t->rest.first;
}

/* `why` NULL: it is written. */
void told_tell(struct pipe *p, struct told *t, const tenrec_error *why);

void bundle_tell(const struct bundle *b, const tenrec_error *why);

/* Returns true for a request that has an answer. */
static inline bool message_wants_answer(const struct tenrec_msg *msg)
{
    return (msg->type & TENREC_MSG_REQUEST_BIT) && msg->type != TENREC_MSG_ONE_WAY_CALL &&
           msg->type != TENREC_MSG_CANCEL;
}

/* pipe_encode.c, under the lock, as a message with tensors is sent. */

/* Refuses a message that its peer, or the transport, would not take. Before anything else is done
 * for it. errors: ETOOBIG */
tenrec_status send_request_check(const struct pipe *p, const struct tenrec_msg *msg,
                                 tenrec_error *err);
/* Gives those that the peer maps their notes, one for each tensor; the others' are empty. Returns
 * true if all are mapped and no bytes follow. */
bool send_request_share(struct pipe *p, const struct tenrec_msg *msg,
                        struct descriptor_note *notes);
/* The message is not sent after all. */
void send_request_take_back(struct pipe *p, const struct tenrec_msg *msg,
                            const struct descriptor_note *notes);
/* All frames of a message of at most SEND_REQUEST_FEW tensors, of which none is sent. Returns
 * their length; 0: send_request_encode says what is wrong. */
size_t send_request_encode_small(const struct pipe *p, const struct tenrec_msg *msg,
                                 const struct descriptor_note *notes, unsigned char *to);
/* The frames around a payload that is not copied, and around tensors. Takes nothing
 * on failure. */
tenrec_status send_request_encode(struct pipe *p, struct tenrec_msg *msg,
                                  struct descriptor_note *notes, struct send_request **ret,
                                  tenrec_error *err);

#endif
