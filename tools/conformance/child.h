/* SPDX-License-Identifier: Apache-2.0 */
/* child.h - one case in a process of its own: a crash, a hang or a leak of the plugin fails
 * that case alone. */
#ifndef TENREC_TOOLS_CONFORMANCE_CHILD_H
#define TENREC_TOOLS_CONFORMANCE_CHILD_H

#include "conformance/case.h"

enum outcome { OUTCOME_OK, OUTCOME_FAILED, OUTCOME_NOT_OFFERED, OUTCOME_UNUSABLE };

struct result {
    enum outcome outcome;
    char rule[EXPECT_RULE_MAX]; /* that a failed case was checking; "": all of the case */
    char text[4096]; /* the last that the process printed, and how it ended; "" for none */
};

/* Runs it, at most `limit_ms`. Standard output and error of the case go to the text. */
void child_run(const struct conformance_case *c, const struct conformance_setup *setup,
               uint64_t limit_ms, struct result *ret);

#endif
