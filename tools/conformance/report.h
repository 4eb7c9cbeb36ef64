/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - the results of a run, case by case and rule by rule. */
#ifndef TENREC_TOOLS_CONFORMANCE_REPORT_H
#define TENREC_TOOLS_CONFORMANCE_REPORT_H

#include "conformance/case.h"

#include <jansson.h>
#include <stddef.h>

/* child.c: one case in a process of its own: a crash, a hang or a leak of the plugin fails
 * that case alone. */

enum outcome { OUTCOME_OK, OUTCOME_FAILED, OUTCOME_NOT_OFFERED, OUTCOME_UNUSABLE };

struct result {
    enum outcome outcome;
    char rule[EXPECT_RULE_MAX]; /* that a failed case was checking; "": all of the case */
    char text[4096]; /* the last that the process printed, and how it ended; "" for none */
};

/* Runs it, at most `limit_ms`. Standard output and error of the case go to the text. */
void child_run(const struct conformance_case *c, const struct conformance_setup *setup,
               uint64_t limit_ms, struct result *ret);

#define RULES_MAX 256

enum format { FOR_PEOPLE, FOR_TAP, FOR_JSON };

struct rule {
    char name[EXPECT_RULE_MAX];
    enum outcome outcome; /* the worst of its cases */
};

struct report {
    enum format format;
    struct rule rule[RULES_MAX];
    size_t n_rules;
    size_t n[3]; /* cases, by outcome */
    json_t *cases;
};

void report_begin(struct report *r, enum format format);
/* `planned`: the number of cases of the run. */
void report_case(struct report *r, const struct conformance_case *c, const struct result *result,
                 size_t planned);
size_t report_count(const struct report *r); /* of cases so far */
/* Prints the rules, and releases all. */
void report_end(struct report *r);
void report_drop(struct report *r);

/* What a case does, for the author of a plugin without the source of this command. */

/* Prints the rules that the case checks, and its source. */
void explain_case(const struct conformance_case *c);

/* Files of the tree as lists of lines up to NULL, made by plugin/embed.py. */

extern const char *const text_rules[]; /* docs/plugin-rules.md */
extern const char *const text_cases[]; /* the sources of all cases, one after the other */

#endif
