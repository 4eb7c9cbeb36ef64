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
    const char *password_file;
    const char *ca_file, *cert_file, *key_file; /* of rediss:// */
    int64_t database;
    uint64_t lease_ms; /* TENREC_FOREVER: none */
};

struct redis_store {
    struct tenrec_plugin_store *self; /* for the log */
    struct redis_url url;
    struct conn_login login;
    struct tls_context *tls; /* NULL: redis:// */
    char password[512];      /* of the password_file; "": none */
    char name[300];
    char meta[REDIS_PREFIX_MAX + 8]; /* "jobs:meta" */
    char address[CONN_ADDRESS_MAX];  /* of the server when the store was opened */
    char id[40];                     /* identity of the store; "" until it is open */
    char client[20];                 /* random id of this client */
    uint64_t lease_ms;               /* in force; 0: none */

    pthread_mutex_t lock;    /* guards all up to `subscriber` */
    pthread_cond_t free;     /* `busy` became false */
    bool busy;               /* a thread uses conn and the numbers, without the lock */
    struct conn *conn;       /* NULL: none, or broken */
    uint64_t answered;       /* number of the last change that was answered */
    uint64_t asked;          /* number of the last change that was sent */
    struct conn *subscriber; /* idle connection for the next wait, or NULL */

    pthread_cond_t wake; /* for the thread that renews the lease */
    pthread_t keeper;
    bool has_keeper, closing; /* `closing` is guarded by lock */
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

/* Start and stop the thread that renews the lease. */
tenrec_status lease_start(struct redis_store *s, tenrec_error *err);
void lease_stop(struct redis_store *s);

tenrec_status redis_store_open(const struct tenrec_store_init *in, struct tenrec_plugin_store *self,
                               tenrec_error *err);
void redis_store_free(struct redis_store *s);

extern const struct tenrec_store_ops redis_ops;

#endif
