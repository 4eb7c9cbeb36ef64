/* SPDX-License-Identifier: Apache-2.0 */
/* rule.h - one rule: the messages it matches, and which of them it hits. */
#ifndef FAULTY_RULE_H
#define FAULTY_RULE_H

#include "options.h"

#include <stdbool.h>
#include <stdint.h>
#include <tenrec/message.h>

/* counts.c: the number of hits of each distinct message. */

/* Which messages share a count; in the order of COUNTS_WORDS_ALL. */
enum counts_by {
    COUNTS_ALL,     /* all that a rule matches */
    COUNTS_PAYLOAD, /* those of the same bytes, of any type and to any receiver, as in torch */
    COUNTS_TYPE,
    COUNTS_DESTINATION,
    COUNTS_TYPE_AND_DESTINATION,
};

/* The values of the options: without the first, and with it. */
#define COUNTS_WORDS "payload|type|destination|type_and_destination"
#define COUNTS_WORDS_ALL "all|" COUNTS_WORDS

/* Returns the key that counts `msg` to (or from) `peer`. COUNTS_PAYLOAD hashes
 * the bytes that name the function and its arguments (key_len), or all bytes
 * when key_len is 0. */
uint64_t counts_key(enum counts_by by, const struct tenrec_msg *msg, tenrec_peer peer);

/* torch keeps every payload for ever. This map keeps 16 bytes of each, and at
 * most COUNTS_MAX of them: beyond that it drops the oldest, whose count then
 * starts at 0 again. */
#define COUNTS_MAX 65536

struct counts {
    struct counts_entry *map;
};

/* Increments the count of `key`. Returns the new count, 0 if it had reached
 * `limit`, -1 when out of memory. */
int64_t counts_next(struct counts *c, uint64_t key, int64_t limit);
unsigned counts_size(const struct counts *c);
void counts_finish(struct counts *c);

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

/* ruleset.c: the rules that are in force together: those of one value of the options. */

struct ruleset {
    const struct faulty_options *opt;
    struct ruleset *former; /* in force before: messages that they hold may be left; owns */
    uint64_t seed;          /* 0: no rule is random */
    struct rule *rule;      /* in the order of their precedence; owns */
    size_t n;
    kinds_mask out, in; /* types that some rule of the direction matches */
    bool reorders;      /* some rule reorders */

    /* Under the agent's lock, as the state of each rule: */
    uint64_t began_ns;
    struct counts failed; /* of messages_to_fail */
};

/* me, backend: of the agent, from which its random streams differ from those of others.
 * errors: ENOMEM */
tenrec_status ruleset_make(const struct faulty_options *opt, tenrec_peer me, const char *backend,
                           struct ruleset **ret, tenrec_error *err);

/* Drops the former ones, too. NULL is fine. */
void ruleset_drop(struct ruleset *r);

/* Resolves the names of workers; from now on `after` counts. errors: ECONFIG */
tenrec_status ruleset_begin(struct ruleset *r, const struct tenrec_member *member, size_t n,
                            bool can_grow, tenrec_error *err);
void ruleset_joined(struct ruleset *r, const struct tenrec_member *member);
void ruleset_left(struct ruleset *r, tenrec_peer id);

/* Logs the seed, and warns of rules that hit nothing. */
void ruleset_tell(const struct ruleset *r, struct tenrec_agent *self);

#endif
