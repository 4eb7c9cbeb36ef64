/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous_store.h - opens the store that init_method names; rank 0 serves a TCP store unless the
 * launcher does. */
#ifndef TENREC_MEETING_RENDEZVOUS_STORE_H
#define TENREC_MEETING_RENDEZVOUS_STORE_H

#include <stdint.h>
#include <tenrec/error.h>

#include "group/meeting/rendezvous.h"

/* Parses the text that names a group's store. */
struct init_method {
    enum { INIT_ENV, INIT_TCP, INIT_FILE, INIT_MEMORY, INIT_OTHER } kind;
    char *text;          /* owns; between :// and the '?'; of INIT_OTHER with the scheme */
    int32_t rank, world; /* of the query; -1: not in it */
};

/* Reads `text`. ret: init_method_finish it, also after an error. errors: EINVAL, ENOMEM */
tenrec_status init_method_read(const char *text, struct init_method *ret, tenrec_error *err);
void init_method_finish(struct init_method *m);

/* Prefixes an error with `label` and the init_method, and masks a password in it. */
void init_method_blame(const char *label, const char *text, tenrec_error *err);

/* Sets r->store, r->server and r->member_serves, and the store's address in r->launch, where a
 * member has its rank and world already. A visitor (r->visitor) serves no store and makes no file.
 *
 * errors: as rendezvous_open; ENOTFOUND (a visitor's file) */
tenrec_status rendezvous_store_open(const struct rendezvous_options *o,
                                    const struct init_method *method, struct rendezvous *r,
                                    uint64_t deadline_ns, tenrec_error *err);

#endif
