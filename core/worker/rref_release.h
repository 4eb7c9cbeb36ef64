/* SPDX-License-Identifier: Apache-2.0 */
/* rref_release.h - the references of a worker that shuts down. */
#ifndef TENREC_WORKER_RREF_RELEASE_H
#define TENREC_WORKER_RREF_RELEASE_H

#include <tenrec/rref.h>

/* When no member has a call outstanding: lets go of all references. Returns
 * when all members have; what is then still referred to has leaked. All members
 * call it.
 *
 * errors: ETIMEDOUT (names who did not come), and what the store says */
tenrec_status rrefs_flush(struct tenrec_worker *w, uint64_t deadline_ns, tenrec_error *err);

/* Tells in the log what has leaked. errors: EBUSY, where that is asked for */
tenrec_status rrefs_check(struct tenrec_worker *w, bool graceful, tenrec_error *err);

/* Leaving alone: tells the owners of all that we refer to. A call's outstanding
 * work until they have acknowledged it. */
void rrefs_let_go(struct tenrec_worker *w);

#endif
