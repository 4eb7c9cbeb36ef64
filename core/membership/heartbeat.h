/* SPDX-License-Identifier: Apache-2.0 */
/* heartbeat.h - whom a member of a dynamic group looks after, and when one that
 * does not answer counts as dead. A table and the rules; it sends nothing and
 * reads no clock.
 *
 * Each member asks the two that follow it by id, so that a look costs the group
 * two small messages per member. Whoever is suspected besides, as a connection
 * to it broke, is asked until it answers. A member is dead that left so many
 * looks in a row unanswered; looks are counted and not seconds, so that who was
 * stopped itself does not bury the others when it goes on. A refused connection
 * is looked at again sooner: nobody listens there. */
#ifndef TENREC_MEMBERSHIP_HEARTBEAT_H
#define TENREC_MEMBERSHIP_HEARTBEAT_H

#include "group/membership_view.h"

#include <stdbool.h>

struct heartbeat_rules {
    uint64_t interval_ns;
    uint32_t misses;
};

struct heartbeat {
    tenrec_peer id;
    int64_t incarnation;
    bool ours;      /* one of the two */
    bool suspected; /* until it answers */
    bool asked;     /* the last look is unanswered */
    uint32_t missed, refused;
    uint64_t next_ns; /* of the next look */
};

struct heartbeats {
    struct heartbeat_rules rules;
    struct heartbeat *list; /* owns */
    size_t n, room;
};

void heartbeats_finish(struct heartbeats *h); /* safe on zeroed memory */

/* The members changed; `me` is one of them. errors: ENOMEM */
tenrec_status heartbeats_follow(struct heartbeats *h, const struct membership_view *v,
                                tenrec_peer me, uint64_t now_ns, tenrec_error *err);

/* Nobody is looked after any more. */
void heartbeats_stop(struct heartbeats *h);

enum heartbeat_due { HEARTBEAT_REST, HEARTBEAT_ASK, HEARTBEAT_DEAD };

/* What is to be done now: to ask *ret, which counts as asked then, or that it is
 * dead (again after each interval); else the time of the next look, CLOCK_NEVER
 * when there is none. */
enum heartbeat_due heartbeats_next(struct heartbeats *h, uint64_t now_ns, struct heartbeat *ret,
                                   uint64_t *ret_next_ns);

void heartbeats_answered(struct heartbeats *h, tenrec_peer id, int64_t incarnation);

/* It could not be asked. `refused`: its host answers, but nobody listens. */
void heartbeats_failed(struct heartbeats *h, tenrec_peer id, int64_t incarnation, bool refused,
                       uint64_t now_ns);

/* A connection to it, or from it, broke: it is looked at now. errors: ENOMEM */
tenrec_status heartbeats_suspect(struct heartbeats *h, tenrec_peer id, int64_t incarnation,
                                 uint64_t now_ns, tenrec_error *err);

/* We may have been cut off ourselves: what was missed so far says nothing, and
 * all are looked at now. */
void heartbeats_start_over(struct heartbeats *h, uint64_t now_ns);

/* It is known that it is dead. */
void heartbeats_bury(struct heartbeats *h, tenrec_peer id, int64_t incarnation, uint64_t now_ns);

#endif
