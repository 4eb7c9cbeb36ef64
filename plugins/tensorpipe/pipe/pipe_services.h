/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_services.h - what channels, and devices, ask of a pipe, and a pipe of its agent.
 *
 * Channels and devices read and write the pipe's fields, each as its comment allows; what a pipe
 * does they reach through this table alone, so that neither is linked against pipe/. */
#ifndef TENSORPIPE_PIPE_SERVICES_H
#define TENSORPIPE_PIPE_SERVICES_H

#include "endpoint.h"
#include "transport/conn.h"

struct send_request;
struct pipe;

/* Without the pipe's lock. */
struct pipe_services {
    void (*ref)(struct pipe *p);
    void (*unref)(struct pipe *p);
    /* Posts a task that keeps the pipe until it ran. */
    void (*post)(struct pipe *p, struct reactor_task *t);
    /* The pipe is broken from now on; the first reason stays. */
    void (*failf)(struct pipe *p, tenrec_status code, int os_errno, const char *fmt, ...)
        TENREC_PRINTF(4, 5);
    /* Sends a frame that is copied. errors: ENOMEM, also when the pipe is broken */
    tenrec_status (*send_object)(struct pipe *p, enum conn_role role, const void *object,
                                 size_t len);
    /* Sends a frame of a head and `len` bytes that stay until `done`. Returns false if it is not
     * sent; `done` is not called then. */
    bool (*send_frame)(struct pipe *p, enum conn_role role, const void *head, size_t head_len,
                       void *data, uint64_t len, struct tenrec_done done);
    /* Completes an unqueued segment of `request`; the last segment completes the request. */
    void (*part_done)(struct pipe *p, struct send_request *request);
    /* The peer has taken `n` tensors from that number on, or refuses one: then its two buffers are
     * written, of which the first ends with the number. Returns false if one is not awaited. */
    bool (*tensors_taken)(struct pipe *p, uint64_t number, uint64_t n);
    bool (*tensor_refused)(struct pipe *p, uint64_t number);
    /* The reader of the pipe takes over what the loop thread reads, or gives it back. */
    void (*lend_side)(struct pipe *p, bool lent);
    /* Encodes the next message that waits for devices. Returns false if there is none. Loop
     * thread, as is the next. */
    bool (*send_device_message)(struct pipe *p);
    /* Delivers a message whose last tensor has arrived. msg NULL: it was rejected, with the reason
     * in `why`. */
    void (*deliver)(struct pipe *p, struct tenrec_msg *msg, int32_t type, int64_t id,
                    const tenrec_error *why);
};

extern const struct pipe_services pipe_services;

/* What a pipe asks of its owner, the agent.
 *
 * An owner may call back into the pipe from `leave`, which runs on the loop thread with no lock
 * held, and from nothing else. */
struct pipe_owner {
    /* The pipe is established. Loop thread, as the next four. */
    void (*established)(struct endpoint *ep, struct pipe *p);
    /* The loop has read from the pipe: it is to spin there first. */
    void (*hot)(struct endpoint *ep, struct pipe *p);
    /* The pipe is broken: no send finds it any more, and the host learns of a lost member. */
    void (*leave)(struct endpoint *ep, struct pipe *p);
    /* Waits for a connection of the pipe's transport that brings the id, for as long as the pipe
     * is not broken. errors: ENOMEM, EOS */
    tenrec_status (*want)(struct endpoint *ep, struct pipe *p, enum conn_role role,
                          uint64_t *ret_id);
    /* Returns true if `n` connections can be accepted besides those that pipes wait for. */
    bool (*has_room)(const struct endpoint *ep, unsigned n);
    /* Sends are complete, which a thread waits for. Any thread. */
    void (*told)(struct endpoint *ep);
};

#endif
