/* SPDX-License-Identifier: Apache-2.0 */
/* link_support.h - workers that stand alone, and their links. */
#ifndef TESTS_LINK_LINK_SUPPORT_H
#define TESTS_LINK_LINK_SUPPORT_H

#include <tenrec/link.h>
#include <tenrec/tenrec.h>

struct record {
    unsigned char bytes[TENREC_LINK_RECORD_MAX];
    size_t len;
};

/* The backend of all workers (one of cluster.h), and their security mode: none, secret, tls, or own
 * for secret with a secret of each. */
void alone_use(const char *backend, const char *mode);

/* Makes and starts a worker that is alone in its group, with the functions of functions.h, and
 * read_on(region). */
struct tenrec_worker *alone_new(const char *name);
void alone_drop(struct tenrec_worker *w);

struct record record_of(struct tenrec_worker *w);
struct tenrec_link *link_to(struct tenrec_worker *w, const struct record *r);
/* Both connect, as the mode may ask for. */
void link_both(struct tenrec_worker *a, struct tenrec_worker *b, struct tenrec_link *ret[2]);

#endif
