/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_inside.h - shared by the parts of the monitor: monitor.c has the thread,
 * monitor_messages.c the messages between members, traffic.c the bytes that arrive from them,
 * view_apply.c applies a new view. */
#ifndef TENREC_WORKER_MONITOR_INSIDE_H
#define TENREC_WORKER_MONITOR_INSIDE_H

#include "group/membership/member_record.h"
#include "rpc/call/service.h"
#include "rpc/worker/heartbeat.h"
#include "rpc/worker/monitor.h"

#include <pthread.h>

struct view_apply_member;
struct membership_list;
struct sent;

/* What arrived from a member. */
struct traffic {
    uint64_t received;  /* bytes at the last look */
    uint64_t signed_at; /* bytes when we sent it a sign of our life */
    uint64_t moved_ns;  /* the last look that found more */
};

struct monitor {
    struct tenrec_worker *w;
    struct membership_list *list; /* borrowed; the thread's, once that runs */
    int64_t incarnation;          /* ours */
    pthread_t thread;
    bool started;
    uint64_t retry_ms;               /* the thread's; 0 while the store answers */
    struct view_apply_member *known; /* the thread's; members, and some that have left */

    pthread_mutex_t lock;        /* guards all below */
    pthread_cond_t changed;      /* monotonic */
    struct membership_view view; /* the latest applied */
    struct heartbeats beats;
    struct traffic *traffic; /* by id; owns */
    size_t n_traffic;
    struct sent *sent;
    int64_t n_sent;
    struct asks asks;
    uint64_t poll_at_ns;  /* no poll before: callers outside the group may request many */
    uint64_t store_at_ns; /* no retry before */
    bool poll;            /* the store may have a newer view */
    bool suspects;        /* a connection broke: check for exited processes */
    uint64_t find_at_ns;  /* check again: a process that ends closes its connections first */
    bool stop, stopped;
    bool departs, departed; /* this worker leaves */
    uint64_t depart_ns;
    tenrec_error depart_why; /* OK: this worker has left */
    bool expelled;           /* this worker was removed by another */
    tenrec_error why;
};

/* ---- monitor_messages.c ---- */

/* Sends a member our version, which it answers. No lock held. */
void monitor_probe(struct monitor *m, tenrec_peer id, int64_t incarnation);

/* Sends all others our version / and waits until all have applied that view. A member that does not
 * answer in time is suspected. No lock held. */
void monitor_announce(struct monitor *m);
void monitor_announce_and_wait(struct monitor *m, uint64_t deadline_ns);

/* Answers the requests that wait for the version that we have now. */
void monitor_answer_ripe(struct monitor *m); /* no lock held */

/* Waits for a change. Returns false at the deadline. Lock held. */
bool monitor_wait(struct monitor *m, uint64_t until_ns);

/* Expects no more answers from `id`. Lock held. */
void monitor_gives_up(struct monitor *m, tenrec_peer id);

void monitor_messages_end(struct monitor *m);

/* ---- traffic.c ---- */

/* Before a verdict: members from which bytes arrived are alive. Sends those from which many arrived
 * a message of ours. No lock held. */
void monitor_look(struct monitor *m);

/* The last look that found bytes from the member; 0: none did. Lock held. */
uint64_t traffic_moved_ns(const struct monitor *m, tenrec_peer id);

/* ---- view_apply.c ---- */

/* Begins with the view and the records of the membership. errors: ENOMEM */
tenrec_status monitor_begin(struct monitor *m, tenrec_error *err);

/* Applies `v` (taken always) unless it is older. The caller may retry after a failure. No lock
 * held. errors: ENOMEM, and those of membership_list_records */
tenrec_status monitor_apply(struct monitor *m, struct membership_view *v, tenrec_error *err);

/* That member is about to leave: its name does not resolve any more. */
void monitor_leaves(struct monitor *m, tenrec_peer id, int64_t incarnation);

/* Marks suspects dead whose process has exited. Returns true if a suspect that did not answer has a
 * process on this host that runs still. Lock held. */
bool monitor_find_dead(struct monitor *m);

void monitor_end(struct monitor *m);

#endif
