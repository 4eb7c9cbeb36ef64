/* SPDX-License-Identifier: Apache-2.0 */
/* store_conn.h - a client's connection to a TCP store: a non-blocking socket with
 * a deadline for every step, with TLS over it or without. */
#ifndef TENREC_STORE_STORE_CONN_H
#define TENREC_STORE_STORE_CONN_H

#include "core/base/resolve.h"
#include "group/store/store_request.h"

struct tls_session;

/* A short answer is read together with those behind it. */
#define STORE_CONN_AHEAD 1024

struct store_conn {
    int fd;
    struct tls_session *tls; /* owns; all bytes go through it; NULL: they are plain */
    bool heard;              /* the server has sent bytes: it has not refused us */
    size_t at, end;          /* of the bytes of `ahead` that no answer has used yet */
    struct store_conn *next; /* for its owner's list */
    uint8_t ahead[STORE_CONN_AHEAD];
};

/* Errors of all: ETIMEDOUT, EPEER_LOST (closed, with the reason), ENOMEM; over TLS also EPERM
 * (the server refuses us after the handshake). The caller prefixes the texts with the store. After
 * an error the connection is unusable. */

/* Connects to the first address that answers. ECONNECT. */
tenrec_status store_conn_open(const struct address *list, size_t n, uint64_t deadline_ns,
                              struct store_conn **ret, tenrec_error *err);
void store_conn_drop(struct store_conn *c);

/* Returns true if an idle connection is still usable: open, and nothing to read. */
bool store_conn_quiet(struct store_conn *c);

/* Waits for POLLIN or POLLOUT. */
tenrec_status store_conn_wait(const struct store_conn *c, short events, uint64_t deadline_ns,
                              tenrec_error *err);

tenrec_status store_conn_send(struct store_conn *c, const struct bytes *request,
                              uint64_t deadline_ns, tenrec_error *err);
tenrec_status store_conn_read(struct store_conn *c, void *ret, size_t len, uint64_t deadline_ns,
                              tenrec_error *err);
/* Reads at least one byte, and at most `room`. */
tenrec_status store_conn_read_some(struct store_conn *c, void *ret, size_t room,
                                   uint64_t deadline_ns, size_t *ret_len, tenrec_error *err);
tenrec_status store_conn_read_u8(struct store_conn *c, uint8_t *ret, uint64_t deadline_ns,
                                 tenrec_error *err);
tenrec_status store_conn_read_i64(struct store_conn *c, int64_t *ret, uint64_t deadline_ns,
                                  tenrec_error *err);
/* ret: owned by the caller, with a NUL behind that is not counted. EPROTOCOL for a
 * blob longer than a value may be. */
tenrec_status store_conn_read_blob(struct store_conn *c, void **ret, size_t *ret_len,
                                   uint64_t deadline_ns, tenrec_error *err);

#endif
