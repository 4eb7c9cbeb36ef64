/* SPDX-License-Identifier: Apache-2.0 */
/* ruleset.h - the rules that are in force together: those of one value of the options. */
#ifndef FAULTY_RULESET_H
#define FAULTY_RULESET_H

#include "rule.h"

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
