/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_send.h - messages on their way out, one by one or in batches. */
#ifndef TENSORPIPE_PIPE_SEND_H
#define TENSORPIPE_PIPE_SEND_H

#include "pipe/send_request.h"

#define COPY_MAX 3500 /* payloads up to this are copied between their frames */

struct pipe;

/* Takes the message and calls `done` once. */
void pipe_send(struct pipe *p, struct tenrec_msg *msg, struct tenrec_done done);
/* An object on the reply connection. ENOMEM */
tenrec_status pipe_send_object(struct pipe *p, enum conn_role role, const void *object, size_t len);
/* Answers the request `msg`, or replaces the answer `msg`, by an EXCEPTION. */
void pipe_send_exception(struct pipe *p, const struct tenrec_msg *msg, const tenrec_error *why);
/* Takes the message and calls `done`. */
void pipe_refuse(struct tenrec_msg *msg, struct tenrec_done done, const tenrec_error *err);

/* pipe_enqueue.c */

/* Types that only Tenrec workers understand. */
#define OWN_MESSAGES 0x180
#define OWN_MESSAGES_END 0x1ff

static inline bool message_is_own(const struct tenrec_msg *msg)
{
    return msg->type >= OWN_MESSAGES && msg->type <= OWN_MESSAGES_END;
}

/* The memory of a queued message, with a handle and a descriptor for each tensor. */
uint64_t send_request_cost(const struct tenrec_msg *msg);
/* Refuses a message that its peer does not understand, or whose tensors no channel carries.
 * errors: EUNSUPPORTED, EINVAL */
tenrec_status message_check(const struct pipe *p, const struct tenrec_msg *msg, tenrec_error *err);
/* Under the lock, when the handshake is over. now: may be filled instead, when nothing
 * is before it; NULL: it is queued. */
tenrec_status pipe_encode_message(struct pipe *p, struct tenrec_msg *msg, struct tenrec_done done,
                                  uint64_t charge, struct bundle *now, tenrec_error *err);
/* The same before that, too, and for messages that the loop thread sends. */
tenrec_status pipe_queue_message(struct pipe *p, struct tenrec_msg *msg, struct tenrec_done done,
                                 uint64_t charge, struct bundle *now, tenrec_error *err);
/* Returns true if the loop thread sends the message. */
bool pipe_is_for_link(const struct pipe *p, const struct tenrec_msg *msg);
/* pipe_pending.c */

/* Sends the next message that waits for the link. Returns false if none does. Loop thread. */
bool pipe_send_device_message(struct pipe *p);
/* Encodes what waited for the handshake, or for deferred connections; then the pipe is
 * established. */
void pipe_send_pending(struct pipe *p);

/* While a thread delivers what it has read at once, what is sent from there
 * gathers in the queues and is written at the end, with one system call. */
struct batch {
    struct batch *outer;
    struct pipe *reading;
    unsigned n;
    struct pipe *dirty[8]; /* other pipes; references */
    unsigned asked;        /* to add to that of `reading` */
    struct bundle bundle;  /* for `reading` */
};

void batch_begin(struct batch *b, struct pipe *reading);
void batch_end(struct batch *b);
/* Writes what was gathered for the pipe that is read. */
void batch_write_own(struct batch *b);
/* Has the batch of this thread write the queue of `p`. Returns false without a batch, or if it has
 * no room for another pipe. */
bool batch_add(struct pipe *p);
/* For a thread that is about to wait in the middle of a delivery. */
void batch_flush_all(void);
/* The batch of this thread; NULL: it does not deliver. */
extern _Thread_local struct batch *batch_now STATIC_TLS;

#endif
