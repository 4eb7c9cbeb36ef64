/* SPDX-License-Identifier: Apache-2.0 */
/* leaks.h - what is open in this process. */
#ifndef TENREC_TESTKIT_LEAKS_H
#define TENREC_TESTKIT_LEAKS_H

#include <tenrec/testkit.h>

enum { LEAKS_FDS = 1024 };

struct leaks {
    unsigned threads;
    unsigned char fd[LEAKS_FDS / 8]; /* a bit for each that is open */
};

/* What there is before any worker. */
void leaks_begin(struct leaks *l);

/* What has come since, and does not go within a moment.
 *
 * errors   EBUSY: "2 threads and fd 7 (socket:[81]) are left"
 */
tenrec_status leaks_check(const struct leaks *l, tenrec_error *err);

/* What a worker still has after its shutdown: calls, remote references.
 *
 * errors   EBUSY
 */
tenrec_status leaks_check_worker(struct tenrec_worker *w, tenrec_error *err);

#endif
