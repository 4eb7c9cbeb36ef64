/* SPDX-License-Identifier: Apache-2.0 */
/* monitor.h - the thread of a worker in a dynamic group, `tenrec-group`: it sees
 * members join, leave and die, and makes the worker follow. All that asks the
 * store once the worker runs is asked here. */
#ifndef TENREC_MEMBERSHIP_MONITOR_H
#define TENREC_MEMBERSHIP_MONITOR_H

#include <stdbool.h>
#include <stdint.h>
#include <tenrec/group.h>

struct monitor;

/* NULL it in static groups: then nothing of what follows does anything.
 *
 * Makes it from what the membership lists; messages may arrive from here on.
 * errors: ENOMEM */
tenrec_status monitor_open(struct tenrec_worker *w, tenrec_error *err);

/* Starts the thread and waits until the others know us, or do not answer. errors: EOS */
tenrec_status monitor_start(struct tenrec_worker *w, uint64_t deadline_ns, tenrec_error *err);

/* The two steps of leaving: nobody begins a call to us any more / we are no
 * member any more, and all know. errors: ETIMEDOUT, and the store's */
void monitor_tell_leaving(struct tenrec_worker *w, uint64_t deadline_ns);
tenrec_status monitor_depart(struct tenrec_worker *w, uint64_t deadline_ns, tenrec_error *err);

/* Ends the thread; messages may still arrive. */
void monitor_stop(struct tenrec_worker *w);
void monitor_close(struct tenrec_worker *w); /* no message can arrive any more */

/* A connection to or from `peer` broke. True: it is in good hands, and the loss of
 * the connection is not yet that of the member. */
bool monitor_suspects(struct tenrec_worker *w, tenrec_peer peer);

/* A VIEW message came, or an answer to one: takes msg. */
void monitor_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg);
void monitor_answered(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg);

#endif
