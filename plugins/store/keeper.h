/* SPDX-License-Identifier: Apache-2.0 */
/* keeper.h - a thread that renews the lease of a store, so that no key expires while a process has
 * the store open. */
#ifndef STORE_KEEPER_H
#define STORE_KEEPER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <tenrec/store_plugin.h>

#define KEEPER_CALL_MS 300 /* a renewal's limit; short, because closing the store waits for it */

/* Zeroed before its start. */
struct keeper {
    struct tenrec_plugin_store *self;                     /* for the log */
    const char *name;                                     /* of the store */
    uint64_t lease_ms;                                    /* in force; 0: none */
    tenrec_status (*renew)(void *arg, tenrec_error *err); /* once, within KEEPER_CALL_MS */
    void *arg;
    pthread_t thread;
    pthread_mutex_t lock; /* guards `closing` */
    pthread_cond_t wake;
    bool running, closing;
};

/* Starts the thread if there is a lease, and logs a lease that is not `wanted_ms`.
 * errors: EOS */
tenrec_status keeper_start(struct keeper *k, uint64_t wanted_ms, const char *thread,
                           tenrec_error *err);
/* Joins the thread, if there is one. */
void keeper_stop(struct keeper *k);

#endif
