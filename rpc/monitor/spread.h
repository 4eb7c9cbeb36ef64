/* SPDX-License-Identifier: Apache-2.0 */
/* spread.h - the tree along which news of a dynamic group travel: rules, without locks, clock or
 * messages.
 *
 * Blocks are aligned ranges of 1, 32, 1024 and 32768 ids. The leader of a block is its lowest
 * member that is not skipped. The parent of a member is the leader of the smallest block which it
 * does not lead itself, so ids fall on the way up and there is no loop, whatever the views of the
 * members are. On the way down a member is asked to cover a block: it asks the leaders of those
 * parts of it to which it does not belong, each for its part. So all members of the block are
 * asked, also members that another view has there. */
#ifndef TENREC_MONITOR_SPREAD_H
#define TENREC_MONITOR_SPREAD_H

#include "group/membership/membership.h"

#include <stdbool.h>

enum {
    SPREAD_BITS = 5,     /* of an id, for each level */
    SPREAD_ALL = 3,      /* the level of the block of all ids */
    SPREAD_CHILDREN = 96 /* at most: 31 for each level */
};

/* Members that are not asked. */
struct spread_skips {
    bool (*skips)(void *arg, const struct membership_view_entry *e);
    void *arg;
};

struct spread_child {
    tenrec_peer id;
    int64_t incarnation;
    unsigned level; /* of the block that it covers */
};

/* Finds the parent of `me` in `v`, whether it is a member or not. Returns false if there is none.
 */
bool spread_parent(const struct membership_view *v, tenrec_peer me, const struct spread_skips *s,
                   struct spread_child *ret);

/* The leaders that `me` asks to cover the block of `level` around it. Returns their number, at most
 * SPREAD_CHILDREN. */
size_t spread_children(const struct membership_view *v, tenrec_peer me, unsigned level,
                       const struct spread_skips *s, struct spread_child *ret);

#endif
