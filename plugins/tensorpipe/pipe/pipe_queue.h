/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_queue.h - messages that wait for the connections of a pipe, or for its peer. */
#ifndef TENSORPIPE_PIPE_QUEUE_H
#define TENSORPIPE_PIPE_QUEUE_H

#include "pipe/send_request.h"

/* Under the pipe's lock, where a field does not say otherwise. */
struct pipe_queue {
    /* Bytes accepted and not written. Plain loads and stores do; read without the lock, too. */
    atomic_uint_fast64_t bytes;
    atomic_uint_fast64_t asked; /* outgoing: requests that want an answer; without the lock */
    atomic_uint_fast64_t n_queued, n_written; /* messages so far, by way */
    atomic_uint_fast64_t large; /* of these, bytes of messages with large tensors; likewise ... */
    unsigned n_large;           /* ... and the number of such messages */
    atomic_bool gathers;        /* a batch has messages that are in no queue; of the reader */
    bool full;                  /* the pipe has stopped reading because of that */
    unsigned n_waiting;         /* senders that wait for room */
    struct send_request_spares lean, open;
    struct send_request_list pending; /* for the handshake, or for deferred connections */
    /* Segments that are kept until the peer has read them. */
    struct segment *awaited, *last_awaited;
    uint64_t n_awaited;  /* so far */
    pthread_cond_t room; /* `bytes` went down, or the pipe broke */
    atomic_uint untold;  /* sends whose done was not called */
    atomic_bool expires; /* the timer is armed for requests with deadlines, or about to be */
    struct reactor_task expire_task;
};

#define LARGE_MIN (64u << 10) /* bytes of a message whose tensors are large */

/* pipe_queue.c: under the lock ... */

/* Counts the message of the request, or takes it off again. */
void pipe_charge_message(struct pipe *p, struct send_request *request, uint64_t charge);
void pipe_uncharge_message(struct pipe *p, struct send_request *request);
/* Returns true if another message of so many bytes may be queued: small messages do not wait for
 * large tensors. */
bool pipe_queue_has_room(const struct pipe *p, bool large, uint64_t charge);
/* Returns true if so much is queued that no further request is to be read. */
bool pipe_queue_is_full(const struct pipe *p);
/* Returns true if half of that has been written. */
bool pipe_queue_is_low(const struct pipe *p);

void pipe_enqueue(struct pipe *p, struct send_request *request);
bool pipe_enqueue_object(struct pipe *p, enum conn_role role, const void *object, size_t len);

/* ... and without it. */

/* Small messages, for a later flush. */
void pipe_queue_bundle(struct pipe *p, const struct bundle *b);
/* A frame of a head and `len` bytes that stay until `done`. Returns false if it
 * is not sent; `done` is not called then. */
bool pipe_send_frame(struct pipe *p, enum conn_role role, const void *head, size_t head_len,
                     void *data, uint64_t len, struct tenrec_done done);
/* Completes an unqueued segment of `request`; the last segment completes the request. */
void pipe_part_done(struct pipe *p, struct send_request *request);
/* The peer has taken `n` tensors from that number on, or refuses one: then its two buffers are
 * written, of which the first ends with the number. Returns false if one is not awaited. */
bool pipe_tensors_taken(struct pipe *p, uint64_t number, uint64_t n);
bool pipe_tensor_refused(struct pipe *p, uint64_t number);
/* Fails all queued messages with the cause of the break. */
void pipe_fail_queue(struct pipe *p);

/* pipe_expire.c: a request with a deadline may wait in a queue of an established pipe. */
void pipe_expire_later(struct pipe *p);

#endif
