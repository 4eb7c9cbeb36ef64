/* SPDX-License-Identifier: Apache-2.0 */
/* parity_functions.h - what the workers of the parity tests serve. */
#ifndef TESTS_PARITY_FUNCTIONS_H
#define TESTS_PARITY_FUNCTIONS_H

#include <tenrec/testkit.h>

enum { FUNCTIONS_WORLD = 8 };

/*   noop, no_result           nothing; the second refuses arguments
 *   light                     0, at once; heavy(tensor): 0, after some work
 *   identity(any)             what it got
 *   add(x, y)                 of integers, or of a float tensor and either
 *   add_inline(x, y)          the same on the delivering thread
 *   min(a, b, c), sum3(a, b, c), named_sum({a, b, c})
 *   nonzero(tensor)           positions that are not zero, as an int64 tensor
 *   raise, raise_lines        fail: "Expected error"; with a line end in it
 *   gate                      until gate_open(rank of the caller)
 *   set_value(i)              kept for value_of(rank)
 *   my_id                     the callee's id
 *   nested_add(dst, tensor)   add(tensor, 1) asked of dst
 *   count, reset_count        on the callee; see count_of
 *   sum_all([tensors], {k: tensor})   their sum
 *   future_add, nested_callback_add(to, x, y, z)   x + y + z, where x + y is asked
 *                             of `to`: blocks for a future that a callback
 *                             completes, in the second after one more call
 *   layers(ttl)               answers at once, calls layers(ttl - 1) on the next
 *   async_*                   answer later, see async.c */
tenrec_status functions_setup(struct tenrec_worker *w, int32_t rank, void *arg, tenrec_error *err);
tenrec_status functions_async(struct tenrec_worker *w, tenrec_error *err);

/* Closes all gates, forgets all values and counts. */
void functions_reset(void);

void gate_open(int32_t rank);
void gate_wait(int32_t rank);
int64_t value_of(int32_t rank); /* -1: not set */
int count_of(int32_t rank);
int layers_run(void);

/* x + y; ret is dropped by the caller. */
tenrec_status add_values(const struct tenrec_value *x, const struct tenrec_value *y,
                         struct tenrec_value **ret, tenrec_error *err);

#endif
