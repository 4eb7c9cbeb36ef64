/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_life.h - how a pipe opens and ends, on the loop thread. */
#ifndef TENSORPIPE_PIPE_LIFE_H
#define TENSORPIPE_PIPE_LIFE_H

#include "pipe/pipe.h"

struct pipe *pipe_new(struct endpoint *ep, bool outgoing);
/* Owns `c` from now on, as that one of its connections. */
void pipe_own(struct pipe *p, struct conn *c, enum conn_role role);
void pipe_established(struct pipe *p);
void pipe_teardown(struct pipe *p);
/* A connection of the pipe begins to carry messages or tensors; NULL is fine. */
void pipe_begin_conn(const struct pipe *p, struct conn *c);

/* ---- handshakes: pipe_connect.c, pipe_accept.c, pipe_greeting.c ---- */

struct pipe *pipe_connect(struct endpoint *ep, struct peer *to);
void pipe_connect_ready(struct pipe *p, struct conn *c, uint32_t events);
/* Takes `c`, whose spontaneous hello was just read. Returns the pipe, borrowed; NULL: no memory,
 * and `c` was dropped. */
struct pipe *pipe_accept(struct endpoint *ep, struct conn *c, struct nop_bytes name);
void pipe_accept_ready(struct pipe *p, struct conn *c, uint32_t events);
/* The peer's one object of the handshake, called `what` in errors, once it has arrived as a whole;
 * borrowed until the next read of `c`. Returns false if it is incomplete, or the pipe is broken. */
bool pipe_read_greeting(struct pipe *p, struct conn *c, const char *what, const unsigned char **ret,
                        size_t *ret_len);
/* The peer ended `c` during the handshake, or a hello could not be sent: `e`, 0 if unknown.
 * Dials again if the peer has said nothing on `c`, or fails the pipe. */
void pipe_greeting_ended(struct pipe *p, const struct conn *c, int e);
/* Outgoing: the peer ended `c` before the pipe was established. */
void pipe_connect_ended(struct pipe *p, struct conn *c);
/* Returns true if the hello may go out on `c`, which is open. Otherwise its proof has begun, whose
 * end is reported as the connection was, or the pipe has failed. */
bool pipe_prove(struct pipe *p, struct conn *c);
/* Outgoing: repeats the handshake after a short delay. Returns false after the last attempt. */
bool pipe_redial(struct pipe *p);
/* ---- pipe_open_deferred.c: deferred connections, once the pipe is established ---- */

/* The run function of their task. */
void pipe_run_deferred(struct reactor_task *t);
/* Outgoing: dials them (pipe_connect.c). */
void pipe_connect_deferred(struct pipe *p);
/* One of them is open, perhaps the last. Outgoing: first they are published, then the last hello
 * goes out, then they are complete, as the listener's answer to that hello may come at once. */
void pipe_publish_deferred(struct pipe *p);
void pipe_complete_deferred(struct pipe *p);
/* Handles events of one of them. Returns false if they are those of any established connection. */
bool pipe_deferred_ready(struct pipe *p, struct conn *c, uint32_t events);
/* They cannot be opened. Does nothing if they are open, or not deferred. */
void pipe_give_deferred_up(struct pipe *p, const char *why);

/* Takes a connection that was requested. */
void pipe_adopt(struct pipe *p, struct conn *c, enum conn_role role);

#endif
