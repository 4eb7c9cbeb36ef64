/* SPDX-License-Identifier: Apache-2.0 */
/* asks.h - VIEW messages that are answered once we know a view as new as their senders do: a
 * list, without threads. The version is the sender's word, so it may never come. */
#ifndef TENREC_CALL_ASKS_H
#define TENREC_CALL_ASKS_H

#include <stdbool.h>
#include <tenrec/types.h>

struct ask {
    struct ask *next;
    tenrec_peer from;
    int64_t msg_id;
    struct tenrec_route route;
    int64_t version;
    tenrec_peer id; /* of the sender, by its own word */
    int64_t incarnation;
    bool leaving; /* of a member, by its own word: it will soon be gone, no new calls */
};

/* A member has one or two at a time. All that are not known as members share those of strangers. */
#define ASKS_OF_MEMBER 8
#define ASKS_OF_STRANGERS 64

/* The oldest first. */
struct asks {
    struct ask *first;
};

/* Keeps `a` (taken). Returns the sender's oldest when it has too many, to be answered and
 * freed by the caller; else NULL. */
struct ask *asks_add(struct asks *all, struct ask *a);
/* Takes those that wait for no more than `version`, or `every` one. */
struct ask *asks_take_ripe(struct asks *all, int64_t version, bool every);
bool asks_have_ripe(const struct asks *all, int64_t version);
void asks_finish(struct asks *all);

#endif
