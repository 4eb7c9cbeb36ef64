/* SPDX-License-Identifier: Apache-2.0 */
/* rref_support.h - helpers of the tests of references. */
#ifndef TESTS_RREF_RREF_SUPPORT_H
#define TESTS_RREF_RREF_SUPPORT_H

#include <tenrec/tenrec.h>

#include "../support/cluster.h"
#include "rpc/rref/rref_context.h"

/* Registers, beside those of functions.h:
 *   value(v)            v itself
 *   broken()            fails
 *   table(n)            an object of type "table" with n entries 0 .. n-1
 *   lookup(table, i)    entry i; the table is an object
 *   put(table, i, v)    sets entry i
 *   sealed()            an object that does not travel
 *   to_here(rref)       its value, fetched by the callee
 *   twice(rref)         the double of its value
 *   give(name, rref)    calls to_here with it on worker `name`
 *   keep(rref)          keeps it until release()
 *   kept()              the value of what is kept
 *   release()           drops what is kept
 *   make(i)             a reference to a value of the callee's
 *   chain(name, ..., i) has the rest of the names make a value; returns the
 *                       reference to it */
void rref_functions(struct tenrec_worker *w, size_t rank);

extern const struct tenrec_object_type table_type;

/* Drops what keep() keeps, also for workers that are gone. */
void rref_release_kept(void);

/* How many tables live in this process. */
int tables_alive(void);

/* Reads one number of the debug info. */
struct rref_counts counts_of(struct tenrec_worker *w);

/* Wait until the numbers are these; fail the test after CLUSTER_LONG_MS. */
void wait_owners_and_forks(struct tenrec_worker *w, size_t owners, size_t forks);
void wait_flushed(struct tenrec_worker *w); /* nothing pending, nothing under way */

/* The integer behind a reference. */
int64_t int_of(struct tenrec_rref *r);

struct tenrec_rref *remote_int(struct tenrec_worker *w, const char *to, int64_t i);
struct tenrec_rref *new_int(struct tenrec_worker *w, int64_t i);

/* Calls, and expects success; returns the integer result. */
int64_t call_int(struct tenrec_worker *w, const char *to, const char *function,
                 const struct tenrec_value *args, size_t n);

#define expect_ok(call, err)                                                                       \
    do {                                                                                           \
        if ((call) != TENREC_OK)                                                                   \
            fail_msg("%s", (err).text);                                                            \
    } while (0)

#endif
