/* SPDX-License-Identifier: Apache-2.0 */
/* asks.h - VIEW requests that are answered once our view is as new as the sender's. A list, without
 * locks. The version is a claim of the sender, so it may never be reached. */
#ifndef TENREC_CALL_ASKS_H
#define TENREC_CALL_ASKS_H

#include <stdbool.h>
#include <tenrec/message.h>

struct ask {
    struct ask *next;
    tenrec_peer from;
    int64_t msg_id;
    struct tenrec_route route;
    int64_t version;
    tenrec_peer id; /* claimed by the sender */
    int64_t incarnation;
    bool leaving; /* a member that is about to leave: no new calls */
};

/* A member has one or two requests at a time. All senders that are no members share those of
 * strangers. */
#define ASKS_OF_MEMBER 8
#define ASKS_OF_STRANGERS 64

/* The oldest first. */
struct asks {
    struct ask *first;
};

/* Adds `a` (taken). If the sender has too many, returns its oldest, which the caller answers and
 * frees; else NULL. */
struct ask *asks_add(struct asks *all, struct ask *a);
/* Removes the requests that `version` satisfies, or `every` request. */
struct ask *asks_take_ripe(struct asks *all, int64_t version, bool every);
bool asks_have_ripe(const struct asks *all, int64_t version);
void asks_finish(struct asks *all);

#endif
