/* SPDX-License-Identifier: Apache-2.0 */
/* rules.h - which callers may call which functions: `security: allow:`, compiled. Immutable, for
 * any thread.
 *
 * The first rule whose pattern fits the name of a function decides about all calls of it. A
 * function without a rule may be called by every member, and by strangers in mode none alone. */
#ifndef TENREC_PROOF_RULES_H
#define TENREC_PROOF_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <tenrec/error.h>

struct tenrec_option_records;
struct rule;
struct rules;

/* The author of a call, as far as rules are concerned. */
struct rule_caller {
    bool member;      /* of the group, or has proved the secret as a tool does */
    const char *name; /* of a worker of the group; "" of others */
};

/* allow    struct config_rule each; copied. NULL: none
 * closed   strangers may do nothing that no rule permits
 * ret      rules_drop; NULL if every caller may call everything
 * errors   ENOMEM */
tenrec_status rules_make(const struct tenrec_option_records *allow, bool closed, struct rules **ret,
                         tenrec_error *err);
void rules_drop(struct rules *r); /* NULL is fine */

/* Returns true if messages of strangers are refused but for the calls that a rule permits. */
bool rules_closed(const struct rules *r);

/* The rule that decides about this function, never NULL; borrowed until rules_drop. */
const struct rule *rules_find(const struct rules *r, const char *function, size_t len);

bool rule_admits(const struct rule *rule, const struct rule_caller *caller);

/* The reason of a refusal, with the position of the rule: EPERM. */
tenrec_status rule_refuse(const struct rule *rule, const struct rule_caller *caller,
                          const char *function, size_t len, tenrec_error *err);

#endif
