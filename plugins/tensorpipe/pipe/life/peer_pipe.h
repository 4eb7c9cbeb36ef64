/* SPDX-License-Identifier: Apache-2.0 */
/* peer_pipe.h - the pipe to a member: made by the first request, used without a lock, and taken out
 * when it breaks. */
#ifndef TENSORPIPE_PEER_PIPE_H
#define TENSORPIPE_PEER_PIPE_H

#include "pipe/peer.h"

/* errors: ENOMEM */
struct peer *peer_new(const struct tenrec_member *m);
void peer_free(struct peer *peer); /* with all that had the id before */

/* Returns the side for peer_leave. */
unsigned peer_enter(struct peer *peer);
void peer_leave(struct endpoint *ep, struct peer *peer, unsigned side);

/* Two operations of the agent: sends a request, through a new pipe if there is none, or an answer
 * along its route; and polls for an answer. */
void peer_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
               struct tenrec_done done);
tenrec_status peer_poll(struct tenrec_agent *self, tenrec_peer from,
                        const struct tenrec_wait *wait);

/* Takes `p` out, if it is the peer's: the next send opens a new pipe. */
void peer_forget(struct peer *peer, struct pipe *p);
/* Releases removed pipes that are not in use any more. */
void peer_drop_old(struct peer *peer);

/* Nothing is sent there any more. */
void peer_retire(struct endpoint *ep, struct peer *peer, const char *why);

#endif
