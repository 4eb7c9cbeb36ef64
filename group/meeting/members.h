/* SPDX-License-Identifier: Apache-2.0 */
/* members.h - the workers of a static group: each publishes itself, waits for
 * all and checks that they belong together. */
#ifndef TENREC_MEETING_MEMBERS_H
#define TENREC_MEETING_MEMBERS_H

#include "group/membership/generation.h"
#include "group/membership/member_record.h"

struct members {
    int32_t n;
    struct member list[]; /* by rank */
};

/* Joins under `name`, with the `address` of the agent; other members get `extra` (may be NULL).
 * Blocks until the records of all ranks were read. After success the generation ends as left; also
 * when the members disagree, as all of them then start again.
 *
 * errors: EINVAL (name, address), EGROUP (names the member that disagrees or shares a name),
 * ETIMEDOUT (names the missing ranks), and the store's */
tenrec_status members_join(struct generation *m, const char *name, const char *address,
                           const struct store_value *extra, uint64_t deadline_ns,
                           struct members **ret, tenrec_error *err);

/* Waits for the records of all, as a visitor (generation_visit).
 *
 * errors: EGROUP, ETIMEDOUT (names the missing ranks), and the store's */
tenrec_status members_await(struct generation *m, uint64_t deadline_ns, struct members **ret,
                            tenrec_error *err);
void members_drop(struct members *members);

#endif
