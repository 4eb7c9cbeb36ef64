/* SPDX-License-Identifier: Apache-2.0 */
/* own.h - for bodies that make and start their workers themselves. */
#ifndef TESTS_PARITY_OWN_H
#define TESTS_PARITY_OWN_H

#include "parity.h"

/* The worker that the kit would have made, with one setting more (key NULL: none) and
 * what `setup` registers. */
tenrec_status own_worker(const struct tenrec_test *t, tenrec_test_setup_fn *setup, const char *key,
                         const char *value, struct tenrec_worker **ret, tenrec_error *err);

/* A group of the workers that needs none of them to run; and all are here. */
struct tenrec_process_group *meet(const struct tenrec_test *t);
void barrier(struct tenrec_process_group *pg);

/* One call, to see that it works: to the next worker, to that one. */
void add_next(const struct tenrec_test *t, struct tenrec_worker *w);
void add_there(struct tenrec_worker *w, const char *to);

void leave(struct tenrec_worker *w); /* waits for the others */
void leave_and_drop(struct tenrec_worker *w);

#endif
