/* SPDX-License-Identifier: Apache-2.0 */
/* gather_lead.h - the parts of a gather at its leader, which gather.c brings. */
#ifndef TENREC_MEMBER_GATHER_LEAD_H
#define TENREC_MEMBER_GATHER_LEAD_H

#include <tenrec/agent.h>
#include <tenrec/value.h>

struct participants;
struct tenrec_future;
struct tenrec_worker;

/* A worker that has joined. */
struct gather_part {
    tenrec_peer id;
    struct tenrec_value *value;   /* owns */
    struct tenrec_future *future; /* shared; of the leader's own part */
    int64_t msg_id;               /* of a follower's */
    struct tenrec_route route;
};

/* A worker joins the gather `number` of the set, and waits until `limit`. Completes the gather with
 * the last worker. Takes *part on success.
 *
 * errors: EINVAL (not in the set), EEXIST (joined before), EAGAIN, ENOMEM, and the error of a
 * failed gather */
tenrec_status gather_join(struct tenrec_worker *w, const struct participants *s, int64_t number,
                          uint64_t limit, const struct gather_part *part, tenrec_error *err);

/* The member `id` cannot join the gather `number` of the set `key`: fails it for all that have
 * joined, with the reason that the member has. */
void gather_refuse(struct tenrec_worker *w, const char *key, int64_t number, tenrec_peer id,
                   const tenrec_error *why);

#endif
