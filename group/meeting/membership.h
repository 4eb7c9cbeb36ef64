/* SPDX-License-Identifier: Apache-2.0 */
/* membership.h - a worker's place in its group: the rendezvous and the members. The worker carries
 * addresses from here to the chain. One thread at a time.
 *
 * The members of a dynamic group are those at the time when this worker joined or visited;
 * monitor.h follows the changes. */
#ifndef TENREC_MEETING_MEMBERSHIP_H
#define TENREC_MEETING_MEMBERSHIP_H

#include "group/membership/membership.h"

#include <tenrec/agent.h>

struct group_lost;
struct loop;
struct loop_timer;
struct members;
struct membership_list;
struct record_texts;
struct rendezvous;
struct store_value;
struct tenrec_process_group;
struct tenrec_chain_options;

/* Our name is known after membership_find, the others' after membership_join. */
struct membership {
    struct rendezvous *rendezvous;
    struct members *members;     /* the records of the members, by id; NULL once they were taken */
    struct record_texts *texts;  /* owns; of those records, for the agents; or NULL */
    uint32_t listed;             /* members */
    struct membership_view view; /* of a dynamic group, when this worker joined; for the monitor */
    struct tenrec_process_group *pg; /* of a static group */
    struct tenrec_member *member;    /* for the agents; in a static group member i has the id i */
    struct loop *loop;               /* borrowed; NULL of a visitor */
    struct loop_timer *rests;        /* in a static group, once it has met; or NULL */
    char name[TENREC_NAME_MAX + 1];
};

/* Resolves our rank and the size of the group, and opens the store; the rank that must serves it.
 * `options`: of the worker's chain; borrowed during the call. */
tenrec_status membership_find(const struct tenrec_chain_options *options, struct loop *loop,
                              uint64_t deadline_ns, struct membership **ret, tenrec_error *err);

/* Publishes our address and `extra` (may be NULL). In a static group waits for all members, whose
 * `backend` (borrowed until membership_drop) must be ours. */
tenrec_status membership_join(struct membership *m, const char *backend, const char *address,
                              const struct store_value *extra, uint64_t deadline_ns,
                              tenrec_error *err);

/* Finds a group and its members, to call them from outside: membership_rank is TENREC_ANONYMOUS,
 * and of the functions below a visitor may use membership_drop and the getters. `store`: its URL;
 * NULL for that of init_method. */
tenrec_status membership_visit(const struct tenrec_chain_options *options, const char *store,
                               uint64_t deadline_ns, struct membership **ret, tenrec_error *err);

/* For a static group, after membership_join: the waits below, and that of membership_drop, fail
 * with EPEER_LOST, which names the member, when they wait for a lost member. */
void membership_set_lost(struct membership *m, const struct group_lost *lost);

/* For a static group without calls and references: marks all members as left in the store; then
 * each counts itself as left, and writes nothing about it. */
tenrec_status membership_mark_left(struct membership *m, uint64_t deadline_ns, tenrec_error *err);
void membership_set_left(struct membership *m);

/* The rank that serves the store waits until the deadline for its last clients. NULL is fine. */
void membership_drop(struct membership *m, uint64_t deadline_ns);

/* Getters. Ours are known after membership_find, the others' after membership_join. Results are
 * borrowed until membership_drop. */
tenrec_peer membership_rank(const struct membership *m);
uint32_t membership_world(const struct membership *m); /* how many members are listed */
size_t membership_ids(const struct membership *m);     /* any in a dynamic group */
/* Returns true if this worker is and stays the only member: then it may have links. */
bool membership_is_alone(const struct membership *m);
/* Returns NULL in a static group. */
struct membership_list *membership_list_of(const struct membership *m);
uint64_t membership_incarnation(const struct membership *m);
uint64_t membership_token(const struct membership *m); /* 0 of a visitor */
const char *membership_group(const struct membership *m);
const char *membership_store_name(const struct membership *m);
bool membership_serves(const struct membership *m); /* the store */
/* How many requests the store has answered that this worker serves. */
uint64_t membership_requests(const struct membership *m);
/* Of a visitor: the process of member `id`. Returns false, and zeroes *ret, if it is none of this
 * host. */
bool membership_process(const struct membership *m, tenrec_peer id, struct member_process *ret);
/* Of a visitor: returns `text` (of `room` bytes) with the reason why member `id` does not answer:
 * it has left, or its process on this host has exited or is stopped. Returns NULL if no reason is
 * known. */
const char *membership_absence(struct membership *m, tenrec_peer id, uint64_t deadline_ns,
                               char *text, size_t room);

/* For a static group. Publishes a number, and waits for that of another member. */
tenrec_status membership_tell_number(struct membership *m, const char *name, int64_t number,
                                     uint64_t deadline_ns, tenrec_error *err);
tenrec_status membership_hear_number(struct membership *m, const char *name, tenrec_peer id,
                                     uint64_t deadline_ns, int64_t *ret, tenrec_error *err);
/* Hands over the records, whose texts the agents borrow until they are shut down. */
struct members *membership_take_records(struct membership *m);
/* The agents have the members: a member of a static group has no records any more. */
void membership_started(struct membership *m);
/* Of a visitor: that of a member's agent; "" if no member has that id. */
const char *membership_address(const struct membership *m, tenrec_peer id);

#endif
