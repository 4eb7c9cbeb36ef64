/* SPDX-License-Identifier: Apache-2.0 */
/* termination.h - termination detection for a graceful shutdown. */
#ifndef TENREC_MEMBER_TERMINATION_H
#define TENREC_MEMBER_TERMINATION_H

#include <stdint.h>
#include <tenrec/rpc.h>

/* The limit of a shutdown with the argument `ms`. TENREC_TIMEOUT_DEFAULT is the timeout of calls,
 * or a minute if calls have none. */
int64_t shutdown_limit_ms(const struct tenrec_worker *w, int64_t ms);

/* From now on a wait for a member of a static group fails when that member is dead. */
void termination_watch_disconnects(struct tenrec_worker *w);

/* Returns when no member has a call outstanding or runs a one-way call. All members call it.
 *
 * errors: ETIMEDOUT (names the missing), EPEER_LOST (names the lost), and the store's */
tenrec_status worker_quiesce(struct tenrec_worker *w, uint64_t deadline_ns, tenrec_error *err);

/* Leaves a dynamic group: returns when no call of this worker is outstanding, none runs here, its
 * references are released and the others know that it has left. The others do not wait.
 *
 * errors: ETIMEDOUT (names what is outstanding), and the store's */
tenrec_status worker_part(struct tenrec_worker *w, uint64_t deadline_ns, tenrec_error *err);

#endif
