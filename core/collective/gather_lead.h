/* SPDX-License-Identifier: Apache-2.0 */
/* gather_lead.h - what a leader's gather is made of; gather.c brings it. */
#ifndef TENREC_COLLECTIVE_GATHER_LEAD_H
#define TENREC_COLLECTIVE_GATHER_LEAD_H

#include <tenrec/agent.h>
#include <tenrec/value.h>

struct participants;
struct tenrec_future;
struct tenrec_worker;

/* One worker that has come. */
struct gather_part {
    tenrec_peer id;
    struct tenrec_value *value;   /* owns */
    struct tenrec_future *future; /* shared; of our own part */
    int64_t msg_id;               /* of another's */
    struct tenrec_route route;
};

/* One more has come to the gather `number` of the set, and waits until `limit`. Completes the
 * gather when it is the last. Takes *part on success.
 *
 * errors: EINVAL (not in the set), EEXIST (came before), EAGAIN, ENOMEM, and what that gather
 * has failed with */
tenrec_status gather_join(struct tenrec_worker *w, const struct participants *s, int64_t number,
                          uint64_t limit, const struct gather_part *part, tenrec_error *err);

#endif
