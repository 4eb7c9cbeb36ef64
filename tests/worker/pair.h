/* SPDX-License-Identifier: Apache-2.0 */
/* pair.h - the two workers that most cases call between. */
#ifndef TESTS_WORKER_PAIR_H
#define TESTS_WORKER_PAIR_H

#include "../support/cluster.h"
#include "../support/functions.h"
#include "../testing.h"

extern struct cluster two; /* worker0 and worker1 */

/* For cmocka: before the first case and after the last. */
void open_two(void);
void close_two(void);

/* From worker0. What it returns is dropped by the case; it fails when the call does. */
struct tenrec_value *call(const char *to, const char *fn, const struct tenrec_value *args,
                          size_t n);
tenrec_status call_fails(const char *to, const char *fn, const struct tenrec_value *args, size_t n,
                         int64_t timeout_ms, tenrec_error *err);

#endif
