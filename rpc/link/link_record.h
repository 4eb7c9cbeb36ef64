/* SPDX-License-Identifier: Apache-2.0 */
/* link_record.h - the record of a worker for a link: as bytes, and as a message. */
#ifndef TENREC_LINK_RECORD_H
#define TENREC_LINK_RECORD_H

#include "group/membership/member_record.h"
#include "group/store/bytes.h"
#include "security/secret/secret.h"

/* What a member's record in a store has, without the process and the devices, and perhaps the
 * secret by which to prove oneself to that worker. */
struct link_record {
    struct member member;
    struct secret *secret; /* owns a share; NULL: none */
};

void link_record_free(struct link_record *r); /* leaves it zeroed */

/* Writes at most TENREC_LINK_RECORD_MAX bytes to `ret`. errors: ETOOBIG, ENOMEM */
tenrec_status link_record_write(const struct link_record *r, void *ret, size_t *ret_len,
                                tenrec_error *err);

/* errors: EPROTOCOL, ENOMEM */
tenrec_status link_record_read(const void *data, size_t len, struct link_record *ret,
                               tenrec_error *err);

/* What the sender of a record adds to it for the worker with that `token`: only a reader of that
 * worker's record can make it. */
enum { LINK_SEAL_BYTES = 8 };
void link_record_seal(const void *data, size_t len, uint64_t token, uint8_t ret[LINK_SEAL_BYTES]);

#endif
