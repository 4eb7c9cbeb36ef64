/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - the reports of failed workers. */
#ifndef TENREC_TESTKIT_REPORT_H
#define TENREC_TESTKIT_REPORT_H

#include "testkit/member.h"

/* Records why a process exited without a result. */
void report_crash(struct member *m);

/* Records that a member hangs. */
void report_hang(struct member *m, bool others_failed);

/* Prints all failures on stderr, with the last output of the processes. */
void report_all(const struct member *member, int32_t n);

/* The first failure, or OK. */
tenrec_status report_first(const struct member *member, const struct board *b, tenrec_error *err);

#endif
