/* SPDX-License-Identifier: Apache-2.0 */
/* store_dial.h - connects a client to a TCP store: its addresses and its request numbers. */
#ifndef TENREC_STORE_STORE_DIAL_H
#define TENREC_STORE_STORE_DIAL_H

#include "group/store/store_conn.h"

struct security;

struct store_dial {
    const struct security *security; /* borrowed; NULL or in mode none: a plain client */
    enum store_dialect dialect;
    struct address address[RESOLVE_MAX];
    size_t n_addresses;
};

/* Fills `d` except its security, and retries until `deadline_ns`. ret: the first connection.
 * errors: ECONNECT, EPEER_LOST, ETIMEDOUT, EPROTOCOL (no store), EPERM (a side is refused, or their
 *         modes differ), and those of resolve_host */
tenrec_status store_dial_open(struct store_dial *d, const char *host, uint16_t port,
                              uint64_t deadline_ns, struct store_conn **ret, tenrec_error *err);

/* Opens another connection, which store_dial_greet makes ready for requests. errors: EPEER_LOST,
 * ETIMEDOUT */
tenrec_status store_dial_again(const struct store_dial *d, uint64_t deadline_ns,
                               struct store_conn **ret, tenrec_error *err);
/* Proves itself as the mode demands, and names the dialect. errors: EPEER_LOST, ETIMEDOUT, EPERM */
tenrec_status store_dial_greet(const struct store_dial *d, struct store_conn *c,
                               uint64_t deadline_ns, tenrec_error *err);

#endif
