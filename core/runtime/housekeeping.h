/* SPDX-License-Identifier: Apache-2.0 */
/* housekeeping.h - what the process has to do now and then, on the loop of whichever
 * worker runs.
 *
 * Memory that all workers share outlives each of them, and has no thread of its
 * own. Who has something to do later says when; while no worker runs it is not
 * done. */
#ifndef TENREC_RUNTIME_HOUSEKEEPING_H
#define TENREC_RUNTIME_HOUSEKEEPING_H

#include <stdint.h>
#include <tenrec/error.h>

struct loop;
struct housekeeping;

/* Returns when it wants to run next; CLOCK_NEVER: when housekeeping_at says so. On
 * the loop thread, may not block. */
typedef uint64_t upkeep_fn(uint64_t now_ns);

/* Lends a loop, from now on until it leaves. errors: ENOMEM */
tenrec_status housekeeping_join(struct loop *l, struct housekeeping **ret, tenrec_error *err);
void housekeeping_leave(struct housekeeping *u); /* NULL is fine */

/* Runs `fn` at the deadline or a little later; an earlier one that it has
 * already stays. There are few functions and they are never taken back. */
void housekeeping_at(upkeep_fn *fn, uint64_t deadline_ns);

#endif
