/* SPDX-License-Identifier: Apache-2.0 */
/* rule.h - one rule: the messages it matches, and which of them it hits. */
#ifndef FAULTY_RULE_H
#define FAULTY_RULE_H

#include "counts.h"
#include "kinds.h"
#include "options.h"

#include <stdbool.h>

/* In the order of OPTIONS_ACTIONS. */
enum rule_action {
    RULE_FAIL,           /* not sent, reported failed */
    RULE_FAIL_IN_FLIGHT, /* sent, reported failed */
    RULE_DROP,           /* not sent, reported sent */
    RULE_DUPLICATE,
    RULE_DELAY,
    RULE_REORDER,
    RULE_CORRUPT,
    RULE_DISCONNECT,
    RULE_SLOW,
};

/* The state of a rule for one peer. */
struct rule_link {
    uint64_t n;             /* matched messages; the position in the random stream */
    uint64_t free_ns;       /* slow: when the link has carried all its messages */
    uint64_t waiting;       /* slow: messages in the queue */
    struct held *overtaken; /* reorder: held until the next message overtakes it */
};

/* The option that a rule is from: torch's options are rules too. */
enum rule_origin { RULE_OF_FAIL, RULE_OF_DELAY, RULE_OF_LIST };

struct rule {
    enum rule_origin origin;
    enum rule_action action;
    char label[OPTIONS_LABEL_MAX]; /* a type of torch's options, or the rule's name */
    bool incoming;                 /* matches received messages */
    kinds_mask kinds;
    const struct tenrec_option_list *peers; /* as written; none: all */
    tenrec_peer *peer;                      /* their ids now, or RULE_NOBODY; owns */
    bool all_peers;
    uint64_t chance; /* the rule hits when a draw of 32 bits is below */
    uint64_t salt;   /* of the rule's random stream */
    uint64_t after_messages;
    uint64_t after_ns;
    int64_t times; /* 0: no limit */
    enum counts_by count_by;
    struct counts *counts; /* shared by all RULE_OF_FAIL; else `own` */
    struct counts own;
    uint32_t by_ms;
    uint64_t bytes_per_second;

    /* Under the agent's lock: */
    uint64_t matched, injected;
    struct rule_link *link; /* by peer + 1; owns */
    size_t n_links;
};

#define RULE_NOBODY ((tenrec_peer)-2)

/* Fill a rule from entry `i` of an option. After an error rule_finish is still
 * due. errors: ENOMEM */
void rule_fail(struct rule *r, const struct faulty_options *o, size_t i, struct counts *shared);
void rule_delay(struct rule *r, const struct faulty_options *o, size_t i);
tenrec_status rule_of(struct rule *r, const struct faulty_options *o, size_t i, uint64_t seed,
                      tenrec_error *err);
void rule_finish(struct rule *r);

/* The name of the rule in messages: its label, or one of torch's options. */
const char *rule_name(const struct rule *r);

/* Returns true if the rule draws random numbers. */
bool rule_draws(const struct rule *r);

/* Resolves names and ranks to ids among `n` members; in a group that can grow an
 * unknown peer may join later. errors: ECONFIG, with the known names */
tenrec_status rule_resolve(struct rule *r, const struct tenrec_member *member, uint32_t n,
                           bool can_grow, tenrec_error *err);
void rule_joined(struct rule *r, const struct tenrec_member *member);
void rule_left(struct rule *r, tenrec_peer id);

/* Returns true if the rule matches a message of type `bit`, and counts it. */
bool rule_means(struct rule *r, kinds_mask bit, tenrec_peer peer);

/* Returns the number of the hit among those that are counted together, 0 if the
 * rule does not hit `msg`, -1 when out of memory. Called for a message that the
 * rule matches and no earlier rule has hit. */
int64_t rule_hits(struct rule *r, const struct tenrec_msg *msg, tenrec_peer peer,
                  uint64_t running_ns);

/* The rule's state for `peer`; NULL when out of memory. Valid until the next call. */
struct rule_link *rule_link(struct rule *r, tenrec_peer peer);

/* Draw number `n` of the rule's random stream for `peer`. */
uint64_t rule_draw(const struct rule *r, tenrec_peer peer, uint64_t n);

#endif
