/* SPDX-License-Identifier: Apache-2.0 */
/* store_call.h - calls on a TCP store. A connection serves one call at a time, since a WAIT blocks
 * it; idle connections are kept for later calls. */
#ifndef TENREC_STORE_STORE_CALL_H
#define TENREC_STORE_STORE_CALL_H

#include "group/store/store.h"
#include "group/store/store_dial.h"

#include <pthread.h>

struct security;

struct store_client {
    struct security *security; /* counted; NULL: none */
    struct store_dial dial;
    pthread_mutex_t lock; /* guards the fields below */
    struct store_conn *idle;
    size_t n_idle;
    struct store_call *busy; /* their connections are open until store_call_end */
};

/* One call: its connection becomes idle only after success. */
struct store_call {
    struct store_client *client;
    struct store_conn *conn;
    struct bytes request;
    uint64_t deadline_ns;    /* for the answers */
    struct store_call *next; /* of the busy ones; guarded by client->lock */
};

void store_client_init(struct store_client *s, struct security *security); /* shared, or NULL */
/* Connects as store_dial_open does, with the proof that the security demands. */
tenrec_status store_client_open(struct store_client *s, const char *host, uint16_t port,
                                uint64_t deadline_ns, tenrec_error *err);
void store_client_finish(struct store_client *s); /* no call is under way */
/* As store_cut and store_rest. */
void store_client_cut(struct store_client *s);
void store_client_rest(struct store_client *s);

/* Begins a call; store_call_end it, also after an error. */
tenrec_status store_call_begin(struct store_call *c, struct store_client *s, uint64_t deadline_ns,
                               tenrec_error *err);
/* Appends a request; key: or NULL. */
void store_call_add(struct store_call *c, enum store_op op, const char *key);
tenrec_status store_call_send(struct store_call *c, tenrec_error *err);
tenrec_status store_call_end(struct store_call *c, tenrec_status st); /* returns `st` */

/* Send the requests and read the last answer, unless `st` is an error. End the call. */
tenrec_status store_call_number(struct store_call *c, tenrec_status st, int64_t *ret,
                                tenrec_error *err);
tenrec_status store_call_value(struct store_call *c, tenrec_status st, struct store_value *ret,
                               tenrec_error *err);

/* Checks which keys are missing, and how many: a CHECK for some dozens together, and one for each
 * of those with a missing one. After an error ret_missing is set for the answers that arrived. */
tenrec_status store_call_check(struct store_call *c, const char *const *keys, size_t n,
                               bool *ret_missing, size_t *ret_count, tenrec_error *err);
/* WAIT for all keys. errors: ETIMEDOUT (the call cannot continue) */
tenrec_status store_call_wait(struct store_call *c, const char *const *keys, size_t n,
                              uint64_t deadline_ns, tenrec_error *err);
/* Reads the values of keys that exist; what was read before an error stays in `ret`. */
tenrec_status store_call_values(struct store_call *c, const char *const *keys, size_t n,
                                struct store_value *ret, tenrec_error *err);
/* Waits until `until_ns`, cancels the WAIT and checks which keys are missing. */
tenrec_status store_call_round(struct store_call *c, const char *const *keys, size_t n,
                               uint64_t until_ns, bool *ret_missing, size_t *ret_count,
                               tenrec_error *err);

#endif
