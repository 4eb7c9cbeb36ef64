/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_inside.h - shared by the parts of the monitor: monitor.c has the thread,
 * monitor_sent.c and monitor_messages.c the messages to and from members, sweep_messages.c those of
 * sweeps, traffic.c the bytes that arrive from members, view_apply.c applies a new view. */
#ifndef TENREC_MONITOR_MONITOR_INSIDE_H
#define TENREC_MONITOR_MONITOR_INSIDE_H

#include "group/membership/member_record.h"
#include "rpc/call/service.h"
#include "rpc/monitor/heartbeat.h"
#include "rpc/monitor/monitor.h"
#include "rpc/monitor/spread.h"
#include "rpc/monitor/view_news.h"

#include <pthread.h>

struct membership_list;
struct sent;
struct sweep;
struct known_member;

/* What the leader of a block has confirmed: that all of the block know our change of that number.
 */
struct confirmed {
    struct spread_child of;
    uint64_t number;
};

/* Requests of this member and of those below it that all members know something, by number. */
struct ups {
    uint64_t asked, confirmed;
    uint64_t log_confirmed; /* our change that the parent knew then */
};

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
    uint64_t retry_ms;           /* the thread's; 0 while the store answers */
    struct known_member *known;  /* the thread's; members, and some that have left */
    struct known_member **by_id; /* the thread's; members */
    size_t n_by_id;

    pthread_mutex_t lock;        /* guards all below */
    pthread_cond_t work;         /* monotonic; the thread waits for it */
    pthread_cond_t changed;      /* monotonic; others wait for it */
    struct membership_view view; /* the latest applied */
    struct heartbeats beats;
    struct traffic *traffic; /* by id; owns */
    size_t n_traffic;
    struct view_log log;
    struct sent *sent;
    int64_t n_sent, n_own;
    struct asks asks;
    struct sweep *sweeps; /* the oldest first */
    struct ups ups;
    struct confirmed *confirmed; /* owns */
    size_t n_confirmed, room_confirmed;
    int64_t *shunned; /* by id; owns: the lives that cover no block: they have left, or are slow */
    size_t n_shunned;
    uint64_t read_ns;     /* begin of the last read of the store that succeeded */
    bool pump;            /* sweeps may go on */
    bool removing;        /* the thread removes a dead member */
    uint64_t poll_at_ns;  /* no poll before: callers outside the group may request many */
    uint64_t store_at_ns; /* no retry before */
    bool poll;            /* the store may have a newer view */
    bool suspects;        /* a connection broke: check for exited processes */
    uint64_t find_at_ns;  /* check again: a process that ends closes its connections first */
    bool stop, stopped;
    bool departs, departed; /* this worker leaves, has left */
    bool expelled;          /* this worker was removed by another */
    tenrec_error why;
};

/* ---- monitor_sent.c ---- */

/* Sends a member our version, which it answers. No lock held. */
void monitor_probe(struct monitor *m, tenrec_peer id, int64_t incarnation);
/* Asks two others whether they reach that member. No lock held. */
void monitor_consult(struct monitor *m, tenrec_peer id, int64_t incarnation);
/* Returns true if such a message after the first `n_sent` waits for its answer. Lock held. */
bool monitor_probes_wait(const struct monitor *m, int64_t n_sent);
/* Waits for a change. Returns false at the deadline. Not by the thread. Lock held. */
bool monitor_wait(struct monitor *m, uint64_t until_ns);
/* There is work for the thread. Lock held. */
void monitor_wake(struct monitor *m);
/* Expects no more answers from `id`. Lock held. */
void monitor_gives_up(struct monitor *m, tenrec_peer id);

/* ---- sweep_messages.c ---- */

/* What a VIEW message asks beside an answer: that all members above, or those of a block, know. */
enum sweep_kind { SWEEP_NONE, SWEEP_UP, SWEEP_DOWN };

/* A VIEW message of a sweep. */
struct sweep_send {
    struct spread_child to;
    enum sweep_kind kind;
    int64_t version;
    uint64_t covers; /* the number that the answer confirms */
    uint64_t log;    /* our change that the receiver knows then */
    struct bytes news;
};

#define SWEEP_NEWS_MAX 61440 /* bytes of changes in a message */

/* No lock held; takes `s`. */
void monitor_sweep_send(struct monitor *m, struct sweep_send *s);
/* Returns true if such a message waits for its answer. Lock held. */
bool monitor_sweep_waits(const struct monitor *m, const struct spread_child *to,
                         enum sweep_kind kind);
/* Gives up receivers that were silent for too long: they are suspects. Lowers *next_ns to the next
 * such time. Lock held. */
void monitor_sweep_expire(struct monitor *m, uint64_t *next_ns);
void monitor_sweep_answer(struct monitor *m, const struct sweep *s, bool done); /* no lock held */

/* ---- sweep.c ---- */

/* A request of a member, or of this worker, that others know. */
struct sweep {
    struct sweep *next;
    enum sweep_kind kind;
    unsigned level; /* of the block to cover */
    tenrec_peer from;
    bool stranger;  /* the sender is no member in our view */
    tenrec_peer id; /* claimed by the sender */
    int64_t incarnation, version, msg_id;
    struct tenrec_route route;
    uint64_t since_ns;
    uint64_t number; /* among the requests for our parent; 0: none yet */
    uint64_t need;   /* our change that the block must know; 0: unknown yet */
    bool own;        /* of this worker, which waits for its end; msg_id counts them */
    void *news;      /* owns; not applied yet */
    size_t news_len;
};

/* A request has arrived; takes `s`. Lock held. Returns a request that is refused instead; NULL:
 * none. */
struct sweep *sweep_add(struct monitor *m, struct sweep *s);
void sweep_free(struct sweep *s);

/* That life covers no block / covers blocks again, as it answers late. Lock held. */
void sweep_shun(struct monitor *m, const struct spread_child *c);
void sweep_shun_no_more(struct monitor *m, tenrec_peer id);

/* Goes on with all requests. By the thread; lock held, but released during the work. */
void sweeps_pump(struct monitor *m);

/* Refuses all that wait / frees them. No lock held. */
void sweeps_stop(struct monitor *m);
void sweeps_end(struct monitor *m);

/* ---- sweep_blocks.c; lock held ---- */

/* A receiver has confirmed, or refused, or was given up. */
void sweep_confirmed(struct monitor *m, const struct sweep_send *s);
void sweep_refused(struct monitor *m, const struct sweep_send *s);

/* The last of our changes that the block has confirmed; 0: none. */
uint64_t sweep_block_number(const struct monitor *m, const struct spread_child *c);

/* The changes after number `after`; without `all` only changes that no view has. If they are too
 * many, their readers go to the store. */
void sweep_pack_changes(struct monitor *m, uint64_t after, bool all, struct bytes *ret);

/* ---- announce.c ---- */

/* Sends all others our version / and waits until all have applied that view, or the deadline. No
 * lock held. */
void monitor_announce(struct monitor *m);
void monitor_announce_and_wait(struct monitor *m, int64_t version, uint64_t deadline_ns);

/* ---- monitor_messages.c ---- */

/* Answers the requests that wait for the version that we have now. */
void monitor_answer_ripe(struct monitor *m); /* no lock held */
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
/* Returns true if it has said so. By the thread. */
bool monitor_is_leaving(const struct monitor *m, tenrec_peer id, int64_t incarnation);

/* Applies what another member tells about that version. Returns false if that does not lead to it
 * from our view: the store has to be read. By the thread; no lock held. */
bool monitor_hear(struct monitor *m, int64_t version, struct view_news *n);

/* The record of a member; NULL: unknown. By the thread. */
const struct member *monitor_record(const struct monitor *m, tenrec_peer id, int64_t incarnation);

/* Marks suspects dead whose process has exited. Returns true if a suspect that did not answer has a
 * process on this host that runs still. Lock held. */
bool monitor_find_dead(struct monitor *m);

void monitor_end(struct monitor *m);

#endif
