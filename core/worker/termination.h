/* SPDX-License-Identifier: Apache-2.0 */
/* termination.h - the wait of a graceful shutdown. */
#ifndef TENREC_WORKER_TERMINATION_H
#define TENREC_WORKER_TERMINATION_H

#include <stdint.h>
#include <tenrec/rpc.h>

/* The limit of a shutdown whose caller says `ms`: also when he leaves it to
 * the default and calls have none. */
int64_t shutdown_limit_ms(const struct tenrec_worker *w, int64_t ms);

/* From now on the waits for members of a static group end when a member that is waited for
 * is dead. */
void termination_watch_disconnects(struct tenrec_worker *w);

/* Returns when nobody in the group has a call outstanding or runs a one-way
 * call. All members call it.
 *
 * errors: ETIMEDOUT (names the missing), EPEER_LOST (names the lost), and what the
 * store says */
tenrec_status worker_quiesce(struct tenrec_worker *w, uint64_t deadline_ns, tenrec_error *err);

/* Leaves a dynamic group: returns when no call of ours is outstanding, none runs
 * here, our references are released and the others know that we are gone. They
 * wait for nothing.
 *
 * errors: ETIMEDOUT (what is left), and what the store says */
tenrec_status worker_part(struct tenrec_worker *w, uint64_t deadline_ns, tenrec_error *err);

#endif
