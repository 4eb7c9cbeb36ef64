/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - one open store. */
#ifndef REDIS_STORE_H
#define REDIS_STORE_H

#include "conn.h"

#include "store/draw.h"
#include "store/keeper.h"
#include "store/login.h"
#include "store/turn.h"

#include <pthread.h>
#include <stddef.h>
#include <tenrec/error.h>
#include <tenrec/store_plugin.h>

#define REDIS_ANSWER_MS 80 /* of 100 ms that an operation may take beyond its deadline */

struct redis_options {
    struct store_login login;
    int64_t database;
    uint64_t lease_ms; /* TENREC_FOREVER: none */
};

struct redis_store {
    struct tenrec_plugin_store *self; /* for the log */
    struct store_url url;
    struct login user;
    struct conn_login login;
    struct tls_context *tls; /* NULL: redis:// */
    char name[300];
    char meta[STORE_PREFIX_MAX + 8]; /* "jobs:meta" */
    char address[CONN_ADDRESS_MAX];  /* of the server when the store was opened */
    char id[40];                     /* identity of the store; "" until it is open */
    char client[20];                 /* random id of this client */
    struct keeper keeper;            /* of the lease */

    struct turn turn;  /* of calls; its holder uses the next three */
    struct conn *conn; /* NULL: none, or broken */
    uint64_t answered; /* number of the last change that was answered */
    uint64_t asked;    /* number of the last change that was sent */

    pthread_mutex_t lock;    /* guards `subscriber` */
    struct conn *subscriber; /* idle connection for the next wait, or NULL */
};

/* One call of a script; borrows all until the call returns. */
struct call {
    const char *script;
    bool changes; /* a change has a number, so that it is made once */
    uint32_t n;   /* arguments */
    const char *const *arg;
    const size_t *len; /* NULL: texts */
};

/* Runs a script within the deadline, over new connections when the old one breaks.
 *
 * ret      the reply, an array of texts; free it with freeReplyObject
 * errors   those of the operations; the text says that a change may have been made
 */
tenrec_status redis_call(struct redis_store *s, const struct call *call, uint64_t deadline_ns,
                         redisReply **ret, tenrec_error *err);

/* Checks the URL of a store. errors: EINVAL */
tenrec_status redis_store_check(const void *options, const char *url, tenrec_error *err);

tenrec_status redis_store_open(const struct tenrec_store_init *in, struct tenrec_plugin_store *self,
                               tenrec_error *err);
void redis_store_free(struct redis_store *s);

extern const struct tenrec_store_ops redis_ops;

/* script.c: the Lua scripts that the server runs, each atomically.
 *
 * A store is two hashes. PREFIX holds the keys. PREFIX:meta holds the identity of
 * the store (`id`, drawn by the process that created it), its lease in
 * milliseconds, and for each client the number and result of its last change, so
 * that a change retried after a lost answer is made once. Both hashes expire
 * together. A change is published on the channel PREFIX + key.
 *
 * All scripts get KEYS = { meta, keys } and ARGV = { id, client, number of the
 * last change that was answered, number of this change (0: none), ... }. They
 * reply with an array, or with the error "LOST" when the store has another `id`
 * or lacks a change that it had answered. The array of a change begins with "1"
 * when the change was made and its number recorded. */

/* ... new id, lease in ms (0: none) -> { id, lease in force }. Ignores
 * ARGV[1..4]. Also checks the permissions of the user. */
extern const char script_open[];
extern const char script_set[];         /* ... key, value -> { "1" } */
extern const char script_add[];         /* ... key, delta -> { "1", sum as text } */
extern const char script_compare_set[]; /* ... key, expected, desired -> { "1" },
                                           { "0", current value }, or { "2" }: missing */
extern const char script_get[];         /* ... keys -> { "1", values }, or { "0", "1" or "0" of
                                           each } when one is missing */
extern const char script_check[];       /* ... keys -> { "1" or "0" of each } */
extern const char script_remove[];      /* ... keys -> { "1", how many as text } */
extern const char script_count[];       /* -> { how many as text } */
extern const char script_renew[];       /* the lease -> {} */
extern const char script_forget[];      /* this client -> {} */

/* subscriber.c: a subscriber: a connection that receives a notification when a key is
 * set. Used by one thread. */

/* Subscribes to the channels of the `n` keys that `missing` marks. */
enum conn_end subscriber_open(struct redis_store *s, const char *const *keys, uint32_t n,
                              const bool *missing, uint64_t deadline_ns, struct conn **ret,
                              tenrec_error *err);

/* Returns CONN_OK when the caller should read the keys: after `count`
 * notifications, a moment after the last of fewer, some seconds without any, or
 * at the deadline. */
enum conn_end subscriber_wait(struct conn *subscriber, uint32_t count, uint64_t deadline_ns,
                              tenrec_error *err);

/* Unsubscribes and keeps the connection for the next wait; drops it if `broken`. */
void subscriber_close(struct redis_store *s, struct conn *subscriber, bool broken,
                      uint64_t deadline_ns);

#endif
