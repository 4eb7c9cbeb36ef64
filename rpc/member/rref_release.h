/* SPDX-License-Identifier: Apache-2.0 */
/* rref_release.h - the references of a worker that shuts down. */
#ifndef TENREC_MEMBER_RREF_RELEASE_H
#define TENREC_MEMBER_RREF_RELEASE_H

#include <tenrec/rref.h>

/* Called by all members once none has a call outstanding. Releases all references, and returns when
 * all members have; values that are referred to afterwards have leaked.
 *
 * errors: ETIMEDOUT (names the missing), and the store's */
tenrec_status rrefs_flush(struct tenrec_worker *w, uint64_t deadline_ns, tenrec_error *err);

/* Logs the leaks. errors: EBUSY, if tenrec_worker_set_rref_leak_check is on */
tenrec_status rrefs_check(struct tenrec_worker *w, bool graceful, tenrec_error *err);

/* Releases all references without the other members; with `orphans` also forks in flight. The
 * messages count as outstanding calls until the owners have acknowledged them. */
void rrefs_release(struct tenrec_worker *w, bool orphans);

#endif
