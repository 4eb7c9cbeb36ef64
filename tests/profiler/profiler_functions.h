/* SPDX-License-Identifier: Apache-2.0 */
/* profiler_functions.h - what the workers of the profiler's tests serve. */
#ifndef TESTS_OBSERVE_PROFILER_FUNCTIONS_H
#define TESTS_OBSERVE_PROFILER_FUNCTIONS_H

#include <tenrec/tenrec.h>

/* Registers those of tests/support/functions.h, and:
 *   marked          records "step", and "inner" within it
 *   through(to, fn) calls fn on `to` and waits
 *   pass(to, fn)    later: calls fn on `to`, and is finished when that is,
 *                   after an event "passed" and one more call of noop in it
 *   give            a reference to a value of its own, when the gate is open
 *   many(n)         records n events "tick" */
void profiler_functions_register(struct tenrec_worker *w, size_t rank);

#endif
