/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_queue.h - what waits for the connections of a pipe, and for its peer. */
#ifndef TENSORPIPE_PIPE_QUEUE_H
#define TENSORPIPE_PIPE_QUEUE_H

#include "pipe/send_request.h"

/* Under the pipe's lock, where a field does not say otherwise. */
struct pipe_queue {
    /* Bytes accepted and not written. Plain loads and stores do; read without the lock, too. */
    atomic_uint_fast64_t bytes;
    atomic_uint_fast64_t asked; /* outgoing: requests that want an answer; without the lock */
    atomic_uint_fast64_t n_queued, n_written; /* messages so far, by way */
    atomic_bool gathers; /* a batch has messages that are in no queue; of the reader */
    bool full;           /* the pipe has stopped reading because of that */
    unsigned n_waiting;  /* senders that wait for room */
    struct send_request_spares lean, open;
    struct send_request_list pending; /* before the pipe is established */
    /* Segments that are kept until the peer has read them. */
    struct segment *awaited, *last_awaited;
    uint64_t n_awaited;  /* so far */
    pthread_cond_t room; /* `bytes` went down, or the pipe broke */
    atomic_uint untold;  /* sends whose done was not called */
    atomic_bool expires; /* the timer is armed for requests with deadlines, or about to be */
    struct reactor_task expire_task;
};

#endif
