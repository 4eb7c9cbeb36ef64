/* SPDX-License-Identifier: Apache-2.0 */
/* neighbours.h - the folder in which the processes of a user that share an address find each other:
 * a lock, which the serving process holds, and a socket per process. */
#ifndef PROMETHEUS_NEIGHBOURS_H
#define PROMETHEUS_NEIGHBOURS_H

#include <stdbool.h>
#include <sys/un.h>
#include <tenrec/observer_plugin.h>

struct neighbours {
    char folder[TENREC_PRIVATE_FOLDER_MAX + sizeof "/tenrec-metrics-0123456789abcdef"];
    int lock;               /* of the file, which is held or not */
    struct sockaddr_un own; /* this process's socket */
};

/* Makes what is missing.
 *
 * within   the folder of this user
 * errors   EOS */
tenrec_status neighbours_open(struct neighbours *n, const char *within, const char *address,
                              tenrec_error *err);
void neighbours_close(struct neighbours *n);

/* Returns true if this process holds the lock, which ends with the process. */
bool neighbours_lock(const struct neighbours *n);
void neighbours_unlock(const struct neighbours *n);

/* Calls `fn` with the socket of each other process. */
void neighbours_each(const struct neighbours *n,
                     void (*fn)(void *arg, const struct sockaddr_un *at), void *arg);

#endif
