/* SPDX-License-Identifier: Apache-2.0 */
/* view_message.h - VIEW messages between members of a dynamic group, and those of ours that wait
 * for an answer. */
#ifndef TENREC_MONITOR_VIEW_MESSAGE_H
#define TENREC_MONITOR_VIEW_MESSAGE_H

#include "rpc/monitor/monitor_inside.h"

/* A VIEW message is four numbers: the sender's version, flags, id and incarnation; one of a sweep
 * has the level of a block and changes (view_news.h) behind them; a message about a third
 * member has its id and incarnation behind them. Its answer is two: the answerer's version (of a
 * sweep that has ended, that of the message; 0 if it is refused), and whether the sender is a
 * member there, or the third member answers. */
enum { VIEW_VERSION, VIEW_FLAGS, VIEW_ID, VIEW_INCARNATION, VIEW_NUMBERS };
enum { CHECK_ID = VIEW_NUMBERS, CHECK_INCARNATION, CHECK_NUMBERS };
enum { RET_VERSION, RET_KNOWN, RET_NUMBERS };
enum {
    FLAG_LEAVING = 1,
    FLAG_WAIT = 2,   /* answer once at that version; not in heartbeats: the store may be slow */
    FLAG_UP = 4,     /* answer once all members know */
    FLAG_DOWN = 8,   /* answer once all members of the block know */
    FLAG_THIRD = 16, /* answer whether the third member answers you */
};

/* Ids of calls are positive. */
#define FIRST_ID INT64_MIN

struct sent {
    struct sent *next;
    struct monitor *monitor;
    int64_t msg_id;
    tenrec_peer id;
    int64_t incarnation;
    tenrec_peer about;         /* the third member that is asked about */
    int64_t about_incarnation; /* 0: none */
    struct sweep_send sweep;   /* without its news; kind is SWEEP_NONE for others */
    uint64_t since_ns;
    bool completed; /* by the agent */
    bool over;      /* answered, failed or abandoned */
};

/* ---- monitor_sent.c ---- */

/* Keeps `s` (taken; NULL: none) for the answer to `msg`. Lock held. */
void sent_add(struct monitor *m, struct sent *s, struct tenrec_msg *msg);
/* Its receiver is lost, or silent for too long. Lock held. */
void sent_lost(struct monitor *m, const struct sent *s);
/* The agent completed a VIEW message. */
void sent_done(void *arg, const tenrec_error *why);

/* ---- sweep_messages.c ---- */

/* Returns true if `msg` is of a sweep, which is kept or refused then. */
bool sweep_arrived(struct tenrec_worker *w, tenrec_peer from, const struct tenrec_msg *msg);

#endif
