/* SPDX-License-Identifier: Apache-2.0 */
/* chain_members.h - the members that a chain was given, for the proof service. */
#ifndef TENREC_BACKEND_CHAIN_MEMBERS_H
#define TENREC_BACKEND_CHAIN_MEMBERS_H

#include <pthread.h>
#include <stdbool.h>
#include <tenrec/agent.h>

struct chain_member {
    tenrec_peer rank;           /* that it calls itself; its id, but for a linked member */
    uint64_t incarnation;       /* 0: unknown */
    const char *name, *address; /* borrowed until the chain's shutdown */
    void *key;                  /* chain_member_set_key; NULL: none */
};

/* From any thread, once init. */
struct chain_members {
    pthread_mutex_t lock;              /* guards the rest */
    const struct tenrec_member *start; /* those of the start; borrowed until the chain's shutdown */
    uint32_t n_start;
    struct chain_change {
        enum { MEMBER_AS_AT_START, MEMBER_HERE, MEMBER_GONE } state;
        struct chain_member member;
    } * change; /* since the start, by id; owns; NULL before the first */
    size_t room;
    bool dynamic; /* members may come that are not known yet; changes never */
    bool links;   /* likewise members of other groups: a rank alone says nothing */
};

void chain_members_init(struct chain_members *m, bool dynamic);
void chain_members_finish(struct chain_members *m);

void chain_members_start(struct chain_members *m, const struct tenrec_member *member, uint32_t n);
/* Replaces the member that had the id. errors: ENOMEM, EINVAL (a negative id) */
tenrec_status chain_members_add(struct chain_members *m, const struct tenrec_member *member,
                                tenrec_error *err);
/* errors: ENOMEM */
tenrec_status chain_members_remove(struct chain_members *m, tenrec_peer id, tenrec_error *err);

/* Returns false if no member has the id. */
bool chain_members_find(struct chain_members *m, tenrec_peer id, struct chain_member *ret);

/* Of a member that was added. */
void chain_members_set_key(struct chain_members *m, tenrec_peer id, void *key);

/* Returns OK for a member in its present life and of its name, for TENREC_ANONYMOUS, in a dynamic
 * group for a life that this worker has not heard of yet, and where links may come for every
 * caller: its backend compares it with the members. errors: EPERM */
tenrec_status chain_members_check(struct chain_members *m, tenrec_peer id, uint64_t incarnation,
                                  const char *name, tenrec_error *err);

#endif
