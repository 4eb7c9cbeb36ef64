/* SPDX-License-Identifier: Apache-2.0 */
/* static_group.h - a static group of torch's workers in the store of a member. It is one of the
 * ranks for which they wait, and can be none: both sides are refused. torch says that a group is
 * static after all ranks have met, so the sign is `init/`, where torch's constructor of a store
 * counts the processes of a static group. */
#ifndef TENREC_MEMBER_STATIC_GROUP_H
#define TENREC_MEMBER_STATIC_GROUP_H

#include "torch/member/member.h"

/* Before joining. errors: EGROUP, and the store's */
tenrec_status static_group_check(struct tenrec_torch_member *m, uint64_t deadline_ns,
                                 tenrec_error *err);

/* Called before the member has joined. Checks again, in a thread of its own, until another worker
 * has joined, too: with m->why set, this process is no member any more. Without memory for the
 * thread nothing checks. */
void static_group_watch(struct tenrec_torch_member *m);
/* The member has left, or is leaving: ends the thread. */
void static_group_unwatch(struct tenrec_torch_member *m);

#endif
