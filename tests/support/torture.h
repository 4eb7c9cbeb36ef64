/* SPDX-License-Identifier: Apache-2.0 */
/* torture.h - any scenario with the 1st failure, the 2nd ... until none is
 * left to fail.
 *
 *     static tenrec_status one_call(void *arg, tenrec_error *err)
 *     {
 *         torture_on();
 *         st = tenrec_rpc_sync(...);
 *         torture_off();
 *         return st;
 *     }
 *     ...
 *     torture(TORTURE_ALLOCATIONS, 1, one_call, NULL);
 *
 * A program that uses it is linked with `torture_link_args`. Allocations are
 * those of the program and of the core in it, not those of plugins. Sends are
 * those of all workers of the process whose backend is torture_inproc or
 * torture_tensorpipe (cluster_use).
 */
#ifndef TESTS_TORTURE_H
#define TESTS_TORTURE_H

#include <stdbool.h>
#include <tenrec/error.h>

enum torture_kind {
    TORTURE_ALLOCATIONS, /* gives NULL */
    TORTURE_SENDS,       /* fails at once with EINJECTED, nothing goes out */
    TORTURE_REPORTS,     /* goes out, and is reported failed with EINJECTED */
    TORTURE_ARRIVALS,    /* is reported sent, and never arrives */
};

/* The scenario. What it returns when something failed in it is its own matter:
 * it asserts what must hold then. `err` must say the same as the status. */
typedef tenrec_status torture_fn(void *arg, tenrec_error *err);

/* Runs fn(arg) with the nth allocation or send failing, and the `in_a_row - 1`
 * that follow it, for n = 1, 2 ... until a run in which none failed; that one
 * must return OK. Returns how many runs had a failure. Fails the test when a
 * run breaks these rules. */
unsigned torture(enum torture_kind kind, unsigned in_a_row, torture_fn *fn, void *arg);

/* From here to there failures are counted and happen, in all threads. Off when
 * a run begins. */
void torture_on(void);
void torture_off(void);

/* Did something fail in this run so far? */
bool torture_happened(void);

/* Registers the backend "torture"; before the first worker is made. */
void torture_register(void);

#endif
