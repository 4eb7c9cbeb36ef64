/* SPDX-License-Identifier: Apache-2.0 */
/* rule.h - one rule: which messages it means, and when it hits one. */
#ifndef FAULTY_RULE_H
#define FAULTY_RULE_H

#include "counts.h"
#include "kinds.h"
#include "options.h"

#include <stdbool.h>

enum rule_action {
    RULE_FAIL,           /* the send fails at once, nothing goes out */
    RULE_FAIL_IN_FLIGHT, /* it goes out, and is reported failed */
    RULE_DROP,           /* it is reported sent, and never goes out */
    RULE_DUPLICATE,
    RULE_DELAY,
    RULE_REORDER,
    RULE_CORRUPT,
    RULE_DISCONNECT,
    RULE_SLOW,
};

/* What a rule remembers of one peer. */
struct rule_link {
    uint64_t n;             /* messages that it meant; the place in the stream of chance */
    uint64_t free_ns;       /* slow: when the link has carried what it was given */
    uint64_t waiting;       /* slow: messages in the queue */
    struct held *overtaken; /* reorder: waits for the next message to pass it */
};

/* Where a rule comes from: torch's options are rules too. */
enum rule_origin { RULE_OF_FAIL, RULE_OF_DELAY, RULE_OF_LIST };

struct rule {
    enum rule_origin origin;
    enum rule_action action;
    char label[OPTIONS_LABEL_MAX]; /* a type of torch's options, or the rule's name */
    bool incoming;                 /* looks at what arrives */
    kinds_mask kinds;
    const struct tenrec_option_list *peers; /* as written; none: all */
    tenrec_peer *peer;                      /* what they mean now, or RULE_NOBODY; owns */
    bool all_peers;
    uint64_t chance; /* it hits when a draw of 32 bits is below */
    uint64_t salt;   /* its own stream */
    uint64_t after_messages;
    uint64_t after_ns;
    int64_t times; /* 0: no limit */
    enum counts_by count_by;
    struct counts *counts; /* RULE_OF_FAIL share one; else `own` */
    struct counts own;
    uint32_t by_ms;
    uint64_t bytes_per_second;

    /* Under the agent's lock: */
    uint64_t matched, injected;
    struct rule_link *link; /* by peer + 1; owns */
    size_t n_links;
};

#define RULE_NOBODY ((tenrec_peer)-2)

/* Fill a rule from entry `i` of an option; rule_finish also one that was filled
 * half. errors: ENOMEM */
void rule_fail(struct rule *r, const struct faulty_options *o, size_t i, struct counts *shared);
void rule_delay(struct rule *r, const struct faulty_options *o, size_t i);
tenrec_status rule_of(struct rule *r, const struct faulty_options *o, size_t i, uint64_t seed,
                      tenrec_error *err);
void rule_finish(struct rule *r);

/* Does it decide by chance? */
bool rule_draws(const struct rule *r);

/* Finds the ids of names and ranks among `n` members; in a group that can grow
 * one that is unknown may come later. errors: ECONFIG, with the known names */
tenrec_status rule_resolve(struct rule *r, const struct tenrec_member *member, uint32_t n,
                           bool can_grow, tenrec_error *err);
void rule_joined(struct rule *r, const struct tenrec_member *member);
void rule_left(struct rule *r, tenrec_peer id);

/* Counts `msg` when the rule means it. */
bool rule_means(struct rule *r, kinds_mask bit, tenrec_peer peer);

/* Does it hit this message, which it means and no rule before it has hit?
 * Returns the number of the hit among those that are counted together, 0 for
 * no, -1 when there was no memory to count it. */
int64_t rule_hits(struct rule *r, const struct tenrec_msg *msg, tenrec_peer peer,
                  uint64_t running_ns);

/* What it remembers of `peer`; NULL: out of memory. Valid until the next call. */
struct rule_link *rule_link(struct rule *r, tenrec_peer peer);

/* The next number of the stream that belongs to the last message it meant. */
uint64_t rule_draw(const struct rule *r, tenrec_peer peer, uint64_t n);

#endif
