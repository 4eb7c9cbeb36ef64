/* SPDX-License-Identifier: Apache-2.0 */
/* participants.h - the set of workers of a gather, independent of the order of its names. */
#ifndef TENREC_MEMBER_PARTICIPANTS_H
#define TENREC_MEMBER_PARTICIPANTS_H

#include <stddef.h>
#include <tenrec/error.h>
#include <tenrec/types.h>

struct peers;

struct participants {
    tenrec_peer *id; /* owns; ordered by name: the first leads */
    size_t n;
    char *key; /* owns: the names, one a line */
};

/* The workers that a program names; the whole group if names is NULL. The set must include this
 * worker. The caller finishes *ret, also after a failure. errors: EINVAL, EPEER_UNKNOWN, ENOMEM */
tenrec_status participants_of_names(const struct peers *p, const char *const *names, size_t n,
                                    struct participants *ret, tenrec_error *err);

/* The set of a key from another worker; this worker must lead it. errors: as above, EPROTOCOL */
tenrec_status participants_of_key(const struct peers *p, const char *key, struct participants *ret,
                                  tenrec_error *err);

void participants_finish(struct participants *s); /* safe on zeroed memory */

#endif
