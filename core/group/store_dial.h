/* SPDX-License-Identifier: Apache-2.0 */
/* store_dial.h - how a client reaches a TCP store: where it is, and which numbers it speaks. */
#ifndef TENREC_GROUP_STORE_DIAL_H
#define TENREC_GROUP_STORE_DIAL_H

#include "group/store_conn.h"

struct store_dial {
    enum store_dialect dialect;
    struct address address[RESOLVE_MAX];
    size_t n_addresses;
};

/* Fills `d`, until it works or `deadline_ns` has passed. ret: the first connection.
 * ECONNECT, EPEER_LOST, ETIMEDOUT, EPROTOCOL (it is no store), and what a host's name fails with.
 */
tenrec_status store_dial_open(struct store_dial *d, const char *host, uint16_t port,
                              uint64_t deadline_ns, struct store_conn **ret, tenrec_error *err);

/* Another connection. EPEER_LOST, ETIMEDOUT. */
tenrec_status store_dial_again(const struct store_dial *d, uint64_t deadline_ns,
                               struct store_conn **ret, tenrec_error *err);

#endif
