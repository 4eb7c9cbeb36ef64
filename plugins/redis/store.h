/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - one open store. */
#ifndef REDIS_STORE_H
#define REDIS_STORE_H

#include "conn.h"

#include <pthread.h>
#include <tenrec/store_plugin.h>

struct redis_options {
    const char *user;
    const char *password;
    int64_t database;
    uint64_t lease_ms; /* TENREC_FOREVER: none */
};

struct redis_store {
    struct tenrec_plugin_store *self; /* for the log */
    struct redis_url url;
    struct conn_login login;
    char name[300];
    char meta[REDIS_PREFIX_MAX + 8]; /* "jobs:meta" */
    char address[CONN_ADDRESS_MAX];  /* where it was when we opened it */
    char id[40];                     /* of what the server holds; set once it is open */
    char client[20];                 /* drawn by us */
    uint64_t lease_ms;               /* in force; 0: none */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t free;  /* the connection is nobody's */
    bool busy;            /* somebody uses the connection and the numbers, without the lock */
    struct conn *conn;    /* NULL: none, or broken */
    uint64_t answered;    /* the number of our last change that was answered */
    uint64_t asked;       /* of the last that was asked for */
    struct conn *ear;     /* a connection for the next wait, or NULL */

    pthread_cond_t wake; /* for the keeper of the lease */
    pthread_t keeper;
    bool has_keeper, closing; /* `closing` is guarded by lock */
};

/* One call of a script; what is borrowed lives during the call. */
struct call {
    const char *script;
    bool changes; /* it gets a number, so that it is done once */
    uint32_t n;   /* arguments */
    const char *const *arg;
    const size_t *len; /* NULL: texts */
};

/* Runs it within the deadline, over new connections when the old one breaks.
 *
 * ret      the reply, an array of texts: freeReplyObject it
 * errors   as those of the operations. A change that may have been made says so
 */
tenrec_status redis_call(struct redis_store *s, const struct call *call, uint64_t deadline_ns,
                         redisReply **ret, tenrec_error *err);

/* The thread that renews the lease. */
tenrec_status lease_start(struct redis_store *s, tenrec_error *err);
void lease_stop(struct redis_store *s);

tenrec_status redis_store_open(const struct tenrec_store_init *in, struct tenrec_plugin_store *self,
                               tenrec_error *err);
void redis_store_free(struct redis_store *s);

extern const struct tenrec_store_ops redis_ops;

#endif
