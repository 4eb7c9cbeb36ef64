/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/group.h - dynamic groups, which change while they run.
 *
 * A group is dynamic if its size is not configured. Its workers join with tenrec_init_rpc and
 * leave with tenrec_shutdown at any time. A dead worker is detected and removed, and its id and
 * name can be reused. Every change makes a new view: a list of members with a version. All members
 * see the views in the same order. A static group has one view, version 1.
 *
 *     calls to a member that left       EPEER_UNKNOWN
 *     calls under way to a dead member  EPEER_LOST
 *     all calls of a worker that was removed because it did not answer for too long: EGROUP;
 *         after tenrec_shutdown it may join again
 *
 * docs/groups.md has the details.
 */
#ifndef TENREC_GROUP_H
#define TENREC_GROUP_H

#include <tenrec/rpc.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The members of the group at one version, by id. */
struct tenrec_group_view {
    uint32_t size; /* sizeof(struct tenrec_group_view) */
    uint32_t n;
    uint64_t version;
    const struct tenrec_worker_info *member; /* n; names live until shutdown */
};

/* Returns the current view.
 *
 * ret      owns: tenrec_group_view_drop it
 * errors   ESHUTDOWN (not running), EGROUP (this worker was removed), ENOMEM
 * threads  any
 */
tenrec_status tenrec_group_view_get(struct tenrec_worker *w, struct tenrec_group_view **ret,
                                    tenrec_error *err);
void tenrec_group_view_drop(struct tenrec_group_view *v); /* NULL is allowed */

/* Waits until the view has this version or a later one; or at least `n` members.
 *
 * ms       as for a call: TENREC_TIMEOUT_DEFAULT is the rpc_timeout
 * errors   ETIMEDOUT (names the current version and members), EGROUP, ESHUTDOWN, EINVAL,
 *          EWOULDBLOCK (inline handler or callback)
 */
tenrec_status tenrec_group_wait_version(struct tenrec_worker *w, uint64_t version, int64_t ms,
                                        tenrec_error *err);
tenrec_status tenrec_group_wait_members(struct tenrec_worker *w, size_t n, int64_t ms,
                                        tenrec_error *err);

/* Called for each member that joins or leaves while this worker runs, in order. The callbacks
 * run one at a time on the worker's `tenrec-group` thread and must not block: a joining worker
 * waits for them. They may make asynchronous calls.
 *
 * why->code  OK: a regular leave; EPEER_LOST: found dead; EGROUP, with this worker as `member`:
 *            this worker was removed from the group
 */
struct tenrec_member_callbacks {
    uint32_t size; /* sizeof(struct tenrec_member_callbacks) */
    uint32_t reserved;
    void (*joined)(struct tenrec_worker *w, const struct tenrec_worker_info *member,
                   uint64_t version, void *arg);
    void (*left)(struct tenrec_worker *w, const struct tenrec_worker_info *member,
                 const tenrec_error *why, uint64_t version, void *arg);
    void *arg;
};

/* Sets the callbacks (copied); NULL removes them. A former callback may still run once after
 * others have been set. Set before tenrec_init_rpc to receive every change: members that joined
 * before this worker are not reported.
 *
 * errors   EINVAL (size)
 */
tenrec_status tenrec_worker_set_member_callbacks(struct tenrec_worker *w,
                                                 const struct tenrec_member_callbacks *c,
                                                 tenrec_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
