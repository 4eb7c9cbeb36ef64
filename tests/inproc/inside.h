/* SPDX-License-Identifier: Apache-2.0 */
/* inside.h - what the parts of the agent share. */
#ifndef INPROC_INSIDE_H
#define INPROC_INSIDE_H

#include "hub.h"

/* envelope.c, without the lock. */

/* The message as its receiver gets it; NULL: it could not be taken. *ret_asked: the host was asked
 * for memory of its tensors, and ends the call of an answer that it refuses. */
struct tenrec_msg *copy_of(struct tenrec_agent *self, const struct envelope *e, bool *ret_asked,
                           tenrec_error *err);
/* Completes an envelope, or a list of envelopes, and frees it. */
void settle(struct envelope *e, const tenrec_error *err);
void settle_all(struct envelope *list, const tenrec_error *err);

/* send.c */

void inproc_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                 struct tenrec_done done);

/* deliver.c */

/* Of the agent `arg`, until it does not serve any more. */
void *deliver_run(void *arg);
/* Reports to the user that the connection to `p` broke. With the lock, which it
 * gives up meanwhile. */
void tell_lost(struct inproc *a, struct peer *p);

#endif
