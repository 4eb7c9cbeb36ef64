/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - how the failure of a worker is told. */
#ifndef TENREC_TESTKIT_REPORT_H
#define TENREC_TESTKIT_REPORT_H

#include "testkit/member.h"

/* Notes why a process failed that is gone and has not said it. */
void report_crash(struct member *m);

/* Notes that a member did not end. */
void report_hang(struct member *m, bool others_failed);

/* Tells all failures on stderr, with what the processes printed. */
void report_all(const struct member *member, int32_t n);

/* What failed first, or OK. */
tenrec_status report_first(const struct member *member, const struct board *b, tenrec_error *err);

#endif
