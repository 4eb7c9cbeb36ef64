/* SPDX-License-Identifier: Apache-2.0 */
/* etcd.h - one open store in etcd, by the JSON gateway of its API v3.
 *
 * The keys of a store are PREFIX + ":" + key. Beside them stand PREFIX:id, the identity of the
 * store with its lease, and for each client PREFIX:c/CLIENT, the number and the result of its last
 * change, so that a change retried after a lost answer is made once. All belong to one lease of
 * etcd, and expire together.
 *
 * Every request is a txn that compares the identity, and the record of this client: it sees a
 * server that has lost the keys, or a change that it had answered. */
#ifndef ETCD_ETCD_H
#define ETCD_ETCD_H

#include "core/base/clock.h"
#include "store/asker.h"
#include "store/base64.h"
#include "store/draw.h"
#include "store/keeper.h"
#include "store/login.h"
#include "store/sum.h"
#include "store/turn.h"
#include "store/url.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenrec/error.h>
#include <tenrec/store_plugin.h>

#define ETCD_TXN_KEYS 100 /* of one txn; the server's default limit is 128 operations */
#define NAME_ROOM ((STORE_PREFIX_MAX + 24) / 3 * 4 + 8)

struct etcd_options {
    struct store_login login;
    uint64_t lease_ms; /* TENREC_FOREVER: none */
};

struct etcd_store {
    struct tenrec_plugin_store *self; /* for the log */
    struct store_url url;
    struct login login;
    char name[400];
    struct asker asker;
    struct http_pool pool;
    char id[64];            /* value of PREFIX:id; "" until it is open */
    char client[NAME_ROOM]; /* PREFIX:c/CLIENT, in base64 */
    char meta[NAME_ROOM];   /* PREFIX:id, in base64 */
    int64_t lease;          /* in etcd; 0: none */
    struct keeper keeper;   /* of the lease */

    struct turn turn;     /* of changes; its holder uses `asked` */
    uint64_t asked;       /* number of the last change that was sent */
    pthread_mutex_t lock; /* guards the rest */
    uint64_t answered;    /* number of the last change that was answered */
    int64_t revision;     /* of the client's record then; 0: there is none */
    char token[512];      /* of the login; "": none */
};

/* Checks the URL of a store. errors: EINVAL */
tenrec_status etcd_store_check(const void *options, const char *url, tenrec_error *err);

tenrec_status etcd_store_open(const struct tenrec_store_init *in, struct tenrec_plugin_store *self,
                              tenrec_error *err);
void etcd_store_free(struct etcd_store *s);

extern const struct tenrec_store_ops etcd_ops;

/* ask.c: requests to any endpoint that answers. */

/* Repeats the request until the deadline while no endpoint answers.
 *
 * lost     NULL for what changes nothing; becomes true if an endpoint may still execute a request
 *          that it did not answer
 * ret      the answer; owned by the caller
 * errors   those of the operations */
tenrec_status etcd_ask(struct etcd_store *s, const char *path, const json_t *request, bool *lost,
                       uint64_t deadline_ns, json_t **ret, tenrec_error *err);
/* One request whose answer goes on, to the endpoint that answered last. */
enum http_end etcd_follow(struct etcd_store *s, const char *path, const struct http_request *r,
                          uint64_t deadline_ns, tenrec_error *err);

/* refusal.c: maps an answer that is an error. Returns HTTP_OK for code 16: log in again. */
enum http_end etcd_refused(long status, const json_t *answer, tenrec_error *err);

/* txn.c: builds and runs a txn. Without memory the parts are ignored, and txn_run fails. */

struct txn {
    struct etcd_store *s;
    json_t *compare, *success, *failure;
    bool broken;
};

void txn_begin(struct txn *t, struct etcd_store *s);
void txn_drop(struct txn *t);
void txn_compare_number(struct txn *t, const char *key, const char *target, const char *result,
                        int64_t n);
void txn_compare_value(struct txn *t, const char *key, const void *data, size_t len);
void txn_put(struct txn *t, const char *key, const void *data, size_t len);
void txn_remove(struct txn *t, const char *key);
void txn_range(struct txn *t, json_t *into, const char *key, bool value);
/* Compares the identity; the answer to a failure begins with it, then the client's record. */
void txn_compare_store(struct txn *t);
/* The whole name of a key of the store, for those above. Free it. */
char *txn_key(const struct etcd_store *s, const char *key);

/* lost     as of etcd_ask
 * ret      the answer; owned by the caller
 * ret_yes  the comparisons held */
tenrec_status txn_run(struct txn *t, bool *lost, uint64_t deadline_ns, json_t **ret, bool *ret_yes,
                      tenrec_error *err);

/* Parts of an answer, borrowed; all take NULL. */
int64_t answer_number(const json_t *object, const char *name);
int64_t answer_revision(const json_t *answer);
const json_t *answer_at(const json_t *answer, size_t i); /* response `i` of a txn */
const json_t *answer_kv(const json_t *answer, size_t i); /* its key; NULL: missing */
/* Free it. errors: EPROTOCOL, ENOMEM */
tenrec_status answer_value(const json_t *kv, char **ret, size_t *ret_len, tenrec_error *err);
/* Whether the id of a failed txn's answer is ours. errors: EPEER_LOST */
tenrec_status answer_check_id(const struct etcd_store *s, const json_t *answer, tenrec_error *err);
tenrec_status answer_lost(tenrec_error *err);

/* change.c: changes that are made once. */

/* What a key held when it was looked at. */
struct held {
    bool known;
    int64_t revision; /* 0: it was missing */
    char *value;      /* NULL: missing, or not asked for */
    size_t len;
};

enum change_step { CHANGE_MAKE, CHANGE_LEAVE, CHANGE_FAIL /* EINVAL */ };

/* One change of `n` keys, ETCD_TXN_KEYS at most. */
struct change {
    const char *const *keys;
    uint32_t n;
    struct held *held; /* zeroed; change_run fills it in, and change_finish frees its values */
    bool wants_values;
    /* Adds comparisons and operations by what is held, with names of keys by txn_key, and writes
     * `result`; or says that there is nothing to change. */
    enum change_step (*plan)(struct change *c, struct txn *t, char *const *names,
                             tenrec_error *err);
    const void *arg;
    char result[24]; /* a number; of the change that was made */
    bool lost;       /* see etcd_ask */
};

/* *ret_made: false where the plan left it. */
tenrec_status change_run(struct etcd_store *s, struct change *c, uint64_t deadline_ns,
                         bool *ret_made, tenrec_error *err);
void change_finish(struct change *c);

/* watch.c */

#define WATCH_KEYS 64 /* of one watch */

/* Waits until those of the keys that `missing` marks, WATCH_KEYS of them at most, were set after
 * `revision`; the id was removed; or some seconds have passed. Returns HTTP_OK when the caller
 * should read the keys. */
enum http_end watch_wait(struct etcd_store *s, const char *const *keys, uint32_t n,
                         const bool *missing, int64_t revision, uint64_t deadline_ns,
                         tenrec_error *err);

/* lease.c */

/* Grants a lease of etcd. *ret: 0 for lease_ms 0 */
tenrec_status lease_grant(struct etcd_store *s, uint64_t lease_ms, uint64_t deadline_ns,
                          int64_t *ret, tenrec_error *err);
void lease_revoke(struct etcd_store *s, int64_t lease, uint64_t deadline_ns);
/* *ret: the lease exists, and begins again. */
tenrec_status lease_renew(struct etcd_store *s, uint64_t deadline_ns, bool *ret, tenrec_error *err);
/* For the keeper. */
tenrec_status lease_keep(void *store, tenrec_error *err);

#endif
