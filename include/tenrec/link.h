/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/link.h - links between two workers that call each other without a group or a store.
 *
 *     tenrec_link_bind(w, 0, record, &len, err);              here
 *     tenrec_link_connect(w, record, len, &link, err);        in the other process
 *     tenrec_rpc_sync(w, tenrec_link_name(link), ...);
 *     tenrec_link_drop(link);
 *
 * Pass the record from one process to the other in any way. The other worker knows the connecting
 * worker at once, so one record is enough for calls, regions and transfers in both directions. Two
 * processes that exchange records may both connect. docs/links.md has the details.
 */
#ifndef TENREC_LINK_H
#define TENREC_LINK_H

#include <tenrec/error.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct tenrec_link; /* opaque */
struct tenrec_worker;

#define TENREC_LINK_RECORD_MAX 1024 /* bytes of a record at most */

enum tenrec_link_flags {
    /* The record carries the group secret: for a peer that is not configured with it. A reader of
     * the record can then call this worker. Both workers connect, each with the record of the
     * other. */
    TENREC_LINK_WITH_SECRET = 1u << 0,
};

/* Writes the record of this worker: its name, its address and the token of its current life.
 *
 * w        the only member of its group (worker.world_size is 1), and running
 * flags    enum tenrec_link_flags
 * ret      TENREC_LINK_RECORD_MAX bytes, of which *ret_len are the record
 * errors   EINVAL (flags), EUNSUPPORTED (the group has other members or may get some; the backend
 *          links no workers; the flag, in another security mode than secret), ETOOBIG, ENOMEM,
 *          ESHUTDOWN
 * threads  any
 */
tenrec_status tenrec_link_bind(struct tenrec_worker *w, uint32_t flags, void *ret, size_t *ret_len,
                               tenrec_error *err);

/* Lets this worker call the worker of a record by its name until the link is dropped, and makes
 * this worker known to it. It does not wait for the peer: the first call fails if the peer cannot
 * be reached. Another record of the same life of that worker gives the same link. Drop the link
 * once for each call.
 *
 * record   borrowed during the call
 * ret      shares: drop it
 * errors   EPROTOCOL (no record, or a damaged one), EINVAL (the record is of this worker), EEXIST
 *          (this worker, or another linked worker, has that name), EGROUP (another backend),
 *          EUNSUPPORTED (as above), EAGAIN (too many links), ENOMEM, ESHUTDOWN
 * threads  any
 */
tenrec_status tenrec_link_connect(struct tenrec_worker *w, const void *record, size_t len,
                                  struct tenrec_link **ret, tenrec_error *err);

/* The name of the peer. Borrowed until the drop. */
const char *tenrec_link_name(const struct tenrec_link *l);

/* The last drop ends the link: its calls and transfers fail with EPEER_LOST, the name becomes
 * unknown, and the peer loses the connections. NULL is allowed, and also a drop after shutdown. */
void tenrec_link_drop(struct tenrec_link *l);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
