/* SPDX-License-Identifier: Apache-2.0 */
/* counts.h - numbers from a worker's debug info. */
#ifndef TENREC_TESTKIT_COUNTS_H
#define TENREC_TESTKIT_COUNTS_H

#include <tenrec/testkit.h>

/* The value of each key; -1 for a key that the worker does not report. */
void counts_get(struct tenrec_worker *w, const char *const *keys, size_t n, int64_t *ret);

#endif
