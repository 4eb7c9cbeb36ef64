/* SPDX-License-Identifier: Apache-2.0 */
/* faulty.h - one faulty agent; private to this plugin. */
#ifndef FAULTY_FAULTY_H
#define FAULTY_FAULTY_H

#include "queue.h"
#include "ruleset.h"

#include <stdatomic.h>

struct faulty {
    struct tenrec_agent *self;
    tenrec_peer me;
    const char *backend; /* of the core, lives as long */
    bool can_grow;       /* the group is dynamic */

    _Atomic(struct ruleset *) rules; /* in force; owns */
    pthread_mutex_t lock;            /* guards the rules' state, their change, and all below */
    struct tenrec_member *member;    /* known now; owns */
    size_t n_members;
    struct queue queue;
};

/* A message hit by a rule. */
struct hit {
    struct rule *rule;
    int64_t number; /* among the hits that are counted together; -1: out of memory */
    bool first;     /* of this rule */
    uint64_t draw;  /* a random number */
};

/* Sends the message to the next agent, or delivers it. Takes the message, as the next two. */
void transit_pass(const struct faulty *f, const struct transit *t);
/* Fails the send of a message: "faulty: `before` this CALL`after`". */
void transit_fail(const struct transit *t, tenrec_status code, const char *before,
                  const char *after);

/* Applies the action of the rule to the message. Returns true if the next agent has received a
 * message, which may have overtaken a held message. */
bool inject(struct faulty *f, const struct hit *hit, const struct transit *t);

/* Passes on the messages that are held until another message to or from `peer`
 * has overtaken them. */
void inject_passed(struct faulty *f, struct ruleset *rules, bool incoming, tenrec_peer peer);

#endif
