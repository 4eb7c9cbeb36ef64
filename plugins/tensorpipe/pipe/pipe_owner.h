/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_owner.h - what a pipe asks of its owner, the agent.
 *
 * An owner may call back into the pipe from `leave`, which runs on the loop thread with no lock
 * held, and from nothing else. */
#ifndef TENSORPIPE_PIPE_OWNER_H
#define TENSORPIPE_PIPE_OWNER_H

#include "endpoint.h"
#include "transport/conn.h"

struct pipe;

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
