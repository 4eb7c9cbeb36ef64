/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_idle.h - the end of a pipe that has carried nothing for a while.
 *
 * Its caller ends it, since a listener sends answers alone. The caller takes the pipe out of its
 * peer, so that the next request opens another, waits until all that was sent is answered and no
 * thread is about to send, and says by a message of the pipe's own that nothing follows. The
 * listener agrees once it has delivered all that came before, and the caller closes the
 * connections. Neither side reports a loss. If the pipe breaks before, the caller does. */
#ifndef TENSORPIPE_PIPE_IDLE_H
#define TENSORPIPE_PIPE_IDLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct pipe;

struct pipe_idle {
    uint64_t moves;     /* messages at the last look; the loop thread's, as the next two */
    uint64_t since_ns;  /* the first look that found as many */
    bool out;           /* it was taken out of its peer */
    atomic_bool asked;  /* outgoing: the listener may agree */
    atomic_bool parted; /* its end is no loss */
};

/* Messages so far, in both directions. */
uint64_t pipe_moves(struct pipe *p);
/* Outgoing: nothing is under way in either direction. With the reader's role. */
bool pipe_is_quiet(struct pipe *p);
/* Tells the listener that nothing follows. */
void pipe_ask_to_part(struct pipe *p);

#endif
