/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous_store.h - opens the store that init_method names; rank 0 serves a TCP store unless the
 * launcher does. */
#ifndef TENREC_MEETING_RENDEZVOUS_STORE_H
#define TENREC_MEETING_RENDEZVOUS_STORE_H

#include "group/meeting/init_method.h"
#include "group/meeting/rendezvous.h"

/* Sets r->store, r->server and r->member_serves, and the store's address in r->launch, where a
 * member has its rank and world already. A visitor (r->visitor) serves no store and makes no file.
 *
 * errors: as rendezvous_open; ENOTFOUND (a visitor's file) */
tenrec_status rendezvous_store_open(const struct rendezvous_options *o,
                                    const struct init_method *method, struct rendezvous *r,
                                    uint64_t deadline_ns, tenrec_error *err);

#endif
