/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_inside.h - what the three parts of the watch share: monitor.c has the thread,
 * monitor_messages.c what members tell each other, and view_apply.c makes the worker
 * follow a new view. */
#ifndef TENREC_MEMBERSHIP_MONITOR_INSIDE_H
#define TENREC_MEMBERSHIP_MONITOR_INSIDE_H

#include "call/asks.h"
#include "group/member_record.h"
#include "membership/heartbeat.h"
#include "membership/monitor.h"

#include <pthread.h>

struct view_apply_member;
struct membership_list;
struct sent;

struct monitor {
    struct tenrec_worker *w;
    struct membership_list *roster; /* borrowed; for the thread only, once it runs */
    int64_t incarnation;            /* ours */
    pthread_t thread;
    bool started;
    uint64_t retry_ms;               /* the thread's; 0: the store answers */
    struct view_apply_member *known; /* the thread's; of the members, and of some that have gone */

    pthread_mutex_t lock;        /* guards all below */
    pthread_cond_t changed;      /* monotonic */
    struct membership_view view; /* what the worker follows */
    struct heartbeats beats;
    struct sent *sent;
    int64_t n_sent;
    struct asks asks;
    uint64_t look_at_ns;  /* no look before: callers that are no members may ask for many */
    uint64_t store_at_ns; /* not asked before */
    bool look;            /* at the store: it may say something new */
    bool suspects;        /* a connection broke: is a process gone? */
    bool stop, stopped;
    bool departs, departed; /* we leave */
    uint64_t depart_ns;
    tenrec_status depart_status;
    tenrec_error depart_why;
    bool expelled; /* we were taken out */
    tenrec_error why;
};

/* ---- monitor_messages.c ---- */

/* Tells one member where we are, which it shall answer. No lock held. */
void monitor_look_at(struct monitor *wa, tenrec_peer id, int64_t incarnation);

/* Tells all others, and waits for nobody / until all have come to the same view.
 * Who does not answer in time is suspected. No lock held. */
void monitor_tell(struct monitor *wa);
void monitor_tell_and_wait(struct monitor *wa, uint64_t deadline_ns);

/* Is there one who waited for what we know now? Lock held. */
bool monitor_has_ripe(const struct monitor *wa);
void monitor_answer_ripe(struct monitor *wa); /* no lock held */

/* Until something changes. False when the deadline came. Lock held. */
bool monitor_wait(struct monitor *wa, uint64_t until_ns);

/* What was asked of `id` is not answered any more. Lock held. */
void monitor_gives_up(struct monitor *wa, tenrec_peer id);

void monitor_messages_end(struct monitor *wa);

/* ---- view_apply.c ---- */

/* What the membership lists is where it begins. errors: ENOMEM */
tenrec_status monitor_begin(struct monitor *wa, tenrec_error *err);

/* Makes the worker follow `v` (taken always), unless it is older. No lock held. What
 * fails may be tried again. errors: ENOMEM, and those of membership_list_records */
tenrec_status monitor_apply(struct monitor *wa, struct membership_view *v, tenrec_error *err);

/* That member is about to leave: nobody here begins a call to it any more. */
void monitor_leaves(struct monitor *wa, tenrec_peer id, int64_t incarnation);

/* Buries suspects whose process does not run any more. Lock held. */
void monitor_find_dead(struct monitor *wa);

void monitor_end(struct monitor *wa);

#endif
