/* SPDX-License-Identifier: Apache-2.0 */
/* housekeeping.h - periodic jobs of the process, on the loop of any running worker.
 *
 * Memory that all workers share outlives each of them and has no thread of its own.
 * While no worker runs, no job runs. */
#ifndef TENREC_BASE_HOUSEKEEPING_H
#define TENREC_BASE_HOUSEKEEPING_H

#include <stdint.h>
#include <tenrec/error.h>

struct loop;
struct housekeeping;

/* Returns the time of the next run; CLOCK_NEVER: set by housekeeping_at. Runs on the
 * loop thread, may not block. */
typedef uint64_t housekeeping_fn(uint64_t now_ns);

/* Lends the loop to the jobs until housekeeping_leave. errors: ENOMEM */
tenrec_status housekeeping_join(struct loop *l, struct housekeeping **ret, tenrec_error *err);
void housekeeping_leave(struct housekeeping *u); /* NULL is fine */

/* Runs `fn` at the deadline or a little later; an earlier deadline of `fn` stays. There
 * are few functions, and none is ever removed. */
void housekeeping_at(housekeeping_fn *fn, uint64_t deadline_ns);

#endif
