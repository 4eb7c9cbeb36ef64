/* SPDX-License-Identifier: Apache-2.0 */
/* functions.h - functions of the workers of tests: some to call, some to wait in, some to count. */
#ifndef TESTS_SUPPORT_FUNCTIONS_H
#define TESTS_SUPPORT_FUNCTIONS_H

#include <tenrec/tenrec.h>

/* Registers noop, add(int, int), identity(any ...) and fail(text), each also as
 * NAME_inline, and:
 *   who          inline: [caller's name, its id, does the caller still wait]
 *   time_left    how many milliseconds the caller still waits
 *   nest(depth)  calls back to its caller, which calls back, ...
 *   wait_gate    until functions_open_gate or its cancel; answers whether canceled
 *   wait_long    the same without looking for a cancel
 *   later(int)   answers the double from another thread; also later_inline
 *   call_inline  inline: tries a synchronous call
 *   count        inline: counts
 *   forget_scope calls count on its caller in a scope that it leaves open; also
 *                forget_scope_inline
 *   sum(tensor)  of float32
 *   range(n)     a float32 tensor */
void functions_register(struct tenrec_worker *w, size_t rank);
/* Registers one function, which must go well. */
void functions_offer(struct tenrec_worker *w, const char *name, tenrec_function_fn *fn,
                     uint32_t flags);

/* A call of wait_gate that waits there now; the gate is closed. */
struct tenrec_future *functions_hold(struct tenrec_worker *w, const char *to);

void functions_close_gate(void);
void functions_open_gate(void);
/* Calls `add` of `to`; the sum is right, or the test fails. */
tenrec_status functions_call_add(struct tenrec_worker *w, const char *to, int64_t a, int64_t b,
                                 tenrec_error *err);
/* The same, and it must go well. */
void functions_must_call_add(struct tenrec_worker *w, const char *to);

/* How often `count` ran, and how many wait in wait_gate. */
int functions_counted(void);
int functions_waiting(void);

#endif
