/* SPDX-License-Identifier: Apache-2.0 */
/* references.h - what the workers of the parity tests serve that makes, takes
 * and gives references. */
#ifndef TESTS_PARITY_REFERENCES_H
#define TESTS_PARITY_REFERENCES_H

#include "parity.h"
#include "parity_functions.h"

#include <tenrec/rref.h>

/* What functions_setup registers, and:
 *   counter_new(start)              an object; slow_counter_new: behind the gate
 *   counter_add(counter, more)      its value then; slow_counter_add: behind the
 *                                   gate, counter_add_later: from another thread
 *   rows(tensor)
 *   add_to_reference(r, x)          the value of r plus x
 *   sum_of_references(a, b)         the values of both, added
 *   nested_add_of(dst, x)           x + 1 by a reference to dst that it makes
 *   nested_references(dst, x)       [x + 1, x + 2] as references to dst
 *   return_reference(dst, x)        x + 1 as a reference to dst
 *   forward(r, ttl)                 [r], through ttl more workers
 *   new_counters([start])           references to counters of the callee
 *   is_confirmed(r)
 *   keep(r), forget                 one reference per worker */
tenrec_status references_setup(struct tenrec_worker *w, int32_t rank, void *arg, tenrec_error *err);

/* References to what `function` makes on `to`; must go well. */
struct tenrec_rref *remote(const struct tenrec_test *t, const char *to, const char *function,
                           const struct tenrec_value *args, size_t n);
struct tenrec_rref *remote_int(const struct tenrec_test *t, const char *to, const char *function,
                               int64_t i);

/* A reference to n x n of (1 + more) on `to`. */
struct tenrec_rref *remote_ones(const struct tenrec_test *t, const char *to, int64_t n,
                                int64_t more);

/* A copy of the value; must go well. */
struct tenrec_value *fetch(struct tenrec_rref *r);

#endif
