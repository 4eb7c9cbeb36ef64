/* SPDX-License-Identifier: Apache-2.0 */
/* keeper.h - a thread that renews the lease of a store, so that no key expires while a process has
 * the store open. */
#ifndef STORE_KEEPER_H
#define STORE_KEEPER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <tenrec/error.h>

/* Zeroed before its start. */
struct keeper {
    /* Renews once, within a fraction of a second: closing the store waits for it. `worked` says
     * whether the last one did. */
    bool (*renew)(void *arg, bool worked);
    void *arg;
    uint64_t lease_ms;
    pthread_t thread;
    pthread_mutex_t lock; /* guards `closing` */
    pthread_cond_t wake;
    bool running, closing;
};

/* name     of the thread
 * errors   EOS */
tenrec_status keeper_start(struct keeper *k, const char *name, tenrec_error *err);
/* Joins the thread, if there is one. */
void keeper_stop(struct keeper *k);

#endif
