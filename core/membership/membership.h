/* SPDX-License-Identifier: Apache-2.0 */
/* membership.h - a worker's place in its group: where the group meets, and who
 * is in it. The worker carries addresses from here to the chain.
 *
 * A dynamic group changes later: monitor.h. What is told here of its members was
 * so when this worker joined, or looked. */
#ifndef TENREC_MEMBERSHIP_MEMBERSHIP_H
#define TENREC_MEMBERSHIP_MEMBERSHIP_H

#include <tenrec/agent.h>

struct config_settings;
struct group_lost;
struct loop;
struct member;
struct membership;
struct membership_list;
struct stores;
struct membership_view;
struct store_value;

/* Finds out our rank and the size of the group, and opens the store (serves
 * it, where that is ours to do). `stores`: for URLs of plugins; borrowed during
 * the call. */
tenrec_status membership_find(const struct config_settings *s, struct stores *stores,
                              struct loop *loop, uint64_t deadline_ns, struct membership **ret,
                              tenrec_error *err);

/* Tells the others where we are, and `extra` (may be NULL), and waits for all of
 * them; in a dynamic group for nobody. */
tenrec_status membership_join(struct membership *m, const char *address,
                              const struct store_value *extra, uint64_t deadline_ns,
                              tenrec_error *err);

/* Finds a group and its members to call them from outside: membership_rank is
 * TENREC_ANONYMOUS, and of what stands below only the drop and the questions are
 * for such a one. `store`: its URL; NULL: as init_method says. */
tenrec_status membership_visit(const struct config_settings *s, struct stores *stores,
                               const char *store, uint64_t deadline_ns, struct membership **ret,
                               tenrec_error *err);

/* For a static group, after membership_join: the waits below, and that of membership_drop, end
 * when they are for a member that is lost. errors of theirs: EPEER_LOST (names the member) */
void membership_set_lost(struct membership *m, const struct group_lost *lost);

/* For a static group. The sums of what all give, n numbers each; they call it equally often. */
tenrec_status membership_sum(struct membership *m, const int64_t *mine, size_t n,
                             uint64_t deadline_ns, int64_t *ret, tenrec_error *err);

/* For a static group. Waits until all are about to leave. */
tenrec_status membership_leave(struct membership *m, uint64_t deadline_ns, tenrec_error *err);

/* A rank that serves the store waits until the deadline for those that still
 * need it. NULL is fine. */
void membership_drop(struct membership *m, uint64_t deadline_ns);

/* Ours, known after membership_find; the others' after membership_join. Borrowed
 * until membership_drop. */
tenrec_peer membership_rank(const struct membership *m);
const char *membership_name(const struct membership *m);
uint32_t membership_world(const struct membership *m); /* how many members are listed */
/* NULL in a static group. Its name and id are ours. */
struct membership_list *membership_roster(const struct membership *m);
/* Of a dynamic group: what we have joined, and the record of each, by id. */
const struct membership_view *membership_view(const struct membership *m);
const struct member *membership_records(const struct membership *m);
uint64_t membership_incarnation(const struct membership *m);
uint64_t membership_token(const struct membership *m); /* 0 of a visitor */
const char *membership_group(const struct membership *m);
const char *membership_store_name(const struct membership *m);
/* Of this host, for the others; "" when all are on it as far as is known. */
const char *membership_vantage(const struct membership *m);
bool membership_serves(const struct membership *m); /* the store */
/* NULL when there is no reason why member `id` should not be there; else that:
 * it has left, or its process does not run here any more. `text` has `room`. */
const char *membership_absence(struct membership *m, tenrec_peer id, uint64_t deadline_ns,
                               char *text, size_t room);
/* What the one in place `i` of the members told as `extra`; NULL and 0: nothing. */
const void *membership_extra(const struct membership *m, uint32_t i, size_t *ret_len);

/* For a static group. A number of our own for the others, and that of another,
 * which is waited for. */
tenrec_status membership_tell_number(struct membership *m, const char *what, int64_t number,
                                     uint64_t deadline_ns, tenrec_error *err);
tenrec_status membership_hear_number(struct membership *m, const char *what, tenrec_peer id,
                                     uint64_t deadline_ns, int64_t *ret, tenrec_error *err);
const char *const *membership_names(const struct membership *m);
/* By id; in a static group member i has the id i. */
const struct tenrec_member *membership_members(const struct membership *m);
/* NULL when none has that id. */
const struct tenrec_member *membership_member(const struct membership *m, tenrec_peer id);

#endif
