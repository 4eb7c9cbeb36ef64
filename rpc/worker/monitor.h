/* SPDX-License-Identifier: Apache-2.0 */
/* monitor.h - the thread of a worker in a dynamic group, `tenrec-group`: it notices members that
 * join, leave and die, and applies the new views. Once the worker runs, only this thread uses the
 * store. */
#ifndef TENREC_WORKER_MONITOR_H
#define TENREC_WORKER_MONITOR_H

#include <stdbool.h>
#include <stdint.h>
#include <tenrec/group.h>
#include <tenrec/message.h>

struct ask;
struct monitor;

/* Makes the monitor from the list of the membership; messages may arrive from here on. In a static
 * group there is none, and the functions below do nothing. errors: ENOMEM */
tenrec_status monitor_open(struct tenrec_worker *w, tenrec_error *err);

/* Starts the thread and waits until the others know this worker or time out. errors: EOS */
tenrec_status monitor_start(struct tenrec_worker *w, uint64_t deadline_ns, tenrec_error *err);

/* The two steps of leaving: afterwards no member begins a call to this worker / this worker is no
 * member, and all know. errors: ETIMEDOUT, and the store's */
void monitor_announce_leaving(struct tenrec_worker *w, uint64_t deadline_ns);
tenrec_status monitor_depart(struct tenrec_worker *w, uint64_t deadline_ns, tenrec_error *err);

/* Stops the thread; messages may still arrive. */
void monitor_stop(struct tenrec_worker *w);
void monitor_close(struct tenrec_worker *w); /* no message can arrive any more */

/* A connection to or from `peer` broke. Returns true if the monitor polls the member, which may be
 * alive. */
bool monitor_suspects(struct tenrec_worker *w, tenrec_peer peer);

/* Keeps `a` until our view has its version, or its deadline expires, or this worker is no member
 * any more. Returns false, and takes nothing, if that is so already. */
bool monitor_view_wait(struct tenrec_worker *w, struct ask *a);

/* A VIEW message, or an answer to one, has arrived. Both take msg. */
void monitor_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg);
void monitor_answered(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg);

#endif
