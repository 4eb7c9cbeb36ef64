/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_message.h - messages of a pipe's own, of which the host learns nothing: a type and an id. */
#ifndef TENSORPIPE_PIPE_MESSAGE_H
#define TENSORPIPE_PIPE_MESSAGE_H

#include <stdbool.h>

struct pipe;

/* No worker sends that type otherwise. */
#define PIPE_MESSAGE 0x1ff
enum pipe_message {
    PIPE_WANTS_CHANNEL = 1,   /* of the listener (pipe_deferred.h) */
    PIPE_HAS_CHANNEL = 2,     /* likewise */
    PIPE_NOTHING_FOLLOWS = 3, /* of the caller (pipe_idle.h) */
    PIPE_AGREES = 4,          /* of the listener */
};

void pipe_tell(struct pipe *p, enum pipe_message what);
/* Such a message has arrived. Returns false if it means nothing. For the reader. */
bool pipe_told(struct pipe *p, enum pipe_message what);

#endif
