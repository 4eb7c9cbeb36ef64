/* SPDX-License-Identifier: Apache-2.0 */
/* faulty.h - one faulty agent, to its own files. */
#ifndef FAULTY_FAULTY_H
#define FAULTY_FAULTY_H

#include "queue.h"
#include "rule.h"

struct faulty {
    struct tenrec_agent *self;
    const struct faulty_options *opt;
    struct tenrec_agent_ops ops; /* only what the rules need: the rest passes by */
    bool can_grow;               /* the group is dynamic */
    uint64_t seed;               /* 0: nothing is left to chance */

    /* In the order in which they are asked. */
    struct rule *rule;
    size_t n_rules;
    kinds_mask out, in; /* all that some rule of either direction means */
    bool reorders;      /* some rule does */

    pthread_mutex_t lock; /* guards the rules' memory, the queue and the two below */
    uint64_t started_ns;
    struct counts failed; /* of messages_to_fail */
    struct queue queue;
};

/* A rule has hit a message. */
struct hit {
    struct rule *rule;
    int64_t number; /* among those that are counted together; -1: no memory to count */
    bool first;     /* of this rule */
    uint64_t draw;  /* what chance says */
};

/* inject.c: does to `msg` what the rule says. Both take the message; outgoing
 * tells `done` once. True: something went on to the next agent now, and may
 * have passed one that was held. */
bool inject_out(struct faulty *f, const struct hit *hit, tenrec_peer to, struct tenrec_msg *msg,
                struct tenrec_done done);
bool inject_in(struct faulty *f, const struct hit *hit, tenrec_peer from, struct tenrec_msg *msg);

/* What waits for another message to or from `peer` to pass it goes now. */
void inject_passed(struct faulty *f, bool incoming, tenrec_peer peer);

#endif
