/* SPDX-License-Identifier: Apache-2.0 */
/* leaks.h - threads and file descriptors of this process, calls of a worker. */
#ifndef TENREC_TESTKIT_LEAKS_H
#define TENREC_TESTKIT_LEAKS_H

#include <tenrec/testkit.h>

enum { LEAKS_FDS = 1024 };

struct leaks {
    unsigned threads;
    unsigned char fd[LEAKS_FDS / 8]; /* a bit for each open descriptor */
};

/* Records the state before any worker. */
void leaks_begin(struct leaks *l);

/* Fails if threads or descriptors were added since leaks_begin and remain for a moment.
 *
 * errors   EBUSY: "2 threads and fd 7 (socket:[81]) are left"
 */
tenrec_status leaks_check(const struct leaks *l, tenrec_error *err);

/* A number of a worker's debug info; -1 for a key that the worker does not report. */
int64_t leaks_number(const struct tenrec_value *info, const char *key);
void leaks_numbers(struct tenrec_worker *w, const char *const *keys, size_t n, int64_t *ret);

/* Fails if a worker has calls after its shutdown.
 *
 * errors   EBUSY
 */
tenrec_status leaks_check_worker(struct tenrec_worker *w, tenrec_error *err);

#endif
