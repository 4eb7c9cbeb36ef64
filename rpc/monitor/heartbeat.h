/* SPDX-License-Identifier: Apache-2.0 */
/* heartbeat.h - failure detector of a dynamic group: a table and rules, without locks, clock or
 * messages.
 *
 * Each member polls the two that follow it by id, at two small messages per member and interval. A
 * suspect, to which a connection broke, is polled until it answers. A member is dead after `misses`
 * unanswered polls in a row. Polls are counted, not seconds: a process that was stopped itself must
 * not declare the others dead when it resumes. After a refused connection the next poll is earlier,
 * as no process listens there.
 *
 * Unless its process has ended, two other members are asked before the verdict, whether the member
 * answers them: a connection that only this member lacks removes no member. They have an interval.
 */
#ifndef TENREC_MONITOR_HEARTBEAT_H
#define TENREC_MONITOR_HEARTBEAT_H

#include "group/membership/membership.h"

#include <stdbool.h>

struct heartbeat_rules {
    uint64_t interval_ns;
    uint32_t misses;
};

struct heartbeat {
    tenrec_peer id;
    int64_t incarnation;
    bool ours;      /* follows us by id */
    bool suspected; /* until it answers */
    bool asked;     /* the last poll is unanswered */
    bool gone;      /* its process has ended */
    bool consulted; /* other members were asked, and none of them has vouched for it */
    uint32_t missed, refused;
    uint32_t others, denials; /* members that were asked; that do not reach it either */
    uint64_t next_ns;         /* time of the next poll */
};

struct heartbeats {
    struct heartbeat_rules rules;
    struct heartbeat *list; /* owns */
    size_t n, room;
};

void heartbeats_finish(struct heartbeats *h); /* safe on zeroed memory */

/* The members changed; `me` is among them. errors: ENOMEM */
tenrec_status heartbeats_follow(struct heartbeats *h, const struct membership_view *v,
                                tenrec_peer me, uint64_t now_ns, tenrec_error *err);

enum heartbeat_due { HEARTBEAT_REST, HEARTBEAT_ASK, HEARTBEAT_CONSULT, HEARTBEAT_DEAD };

/* Returns the next action: poll *ret, which counts as asked then, ask others about *ret, or remove
 * *ret, which is dead (again after each interval); else sets the time of the next poll, CLOCK_NEVER
 * if none. */
enum heartbeat_due heartbeats_next(struct heartbeats *h, uint64_t now_ns, struct heartbeat *ret,
                                   uint64_t *ret_next_ns);

void heartbeats_answered(struct heartbeats *h, tenrec_peer id, int64_t incarnation);

/* Bytes arrived from the member: its answer may wait behind them. */
void heartbeats_progress(struct heartbeats *h, tenrec_peer id, int64_t incarnation);

/* `n` other members were asked; with none the verdict is due. */
void heartbeats_consulted(struct heartbeats *h, tenrec_peer id, int64_t incarnation, uint32_t n,
                          uint64_t now_ns);
/* One of them answered: the member is alive, or answers it neither. */
void heartbeats_vouched(struct heartbeats *h, tenrec_peer id, int64_t incarnation, bool alive,
                        uint64_t now_ns);

/* Another member asks: polls it now. Misses nothing. errors: ENOMEM */
tenrec_status heartbeats_check(struct heartbeats *h, tenrec_peer id, int64_t incarnation,
                               uint64_t now_ns, tenrec_error *err);

/* Copies all that are dead to `ret`, which has room for all. Returns their number. */
size_t heartbeats_dead(const struct heartbeats *h, struct heartbeat *ret);

/* Returns true if the member has to answer first. */
bool heartbeats_suspects(const struct heartbeats *h, tenrec_peer id, int64_t incarnation);

/* Why it is dead. */
const char *heartbeat_why(const struct heartbeats *h, const struct heartbeat *dead);

/* The poll failed. `refused`: the host answers, but no process listens. */
void heartbeats_failed(struct heartbeats *h, tenrec_peer id, int64_t incarnation, bool refused,
                       uint64_t now_ns);

/* A connection to or from the member broke: polls it now. errors: ENOMEM */
tenrec_status heartbeats_suspect(struct heartbeats *h, tenrec_peer id, int64_t incarnation,
                                 uint64_t now_ns, tenrec_error *err);

/* This process may have been cut off itself: forgets missed answers and polls all now. */
void heartbeats_start_over(struct heartbeats *h, uint64_t now_ns);

/* The member's process has ended. */
void heartbeats_bury(struct heartbeats *h, tenrec_peer id, int64_t incarnation, uint64_t now_ns);

#endif
