/* SPDX-License-Identifier: Apache-2.0 */
/* run_secret.h - the group secret of a run: its choice, and its way to the workers. */
#ifndef TENREC_TOOLS_RUN_SECRET_H
#define TENREC_TOOLS_RUN_SECRET_H

#include "run/workers.h"
#include "security/proof/security.h"
#include "security/secret/secret_handover.h"

/* Zeroed: none. */
struct run_secret {
    struct security *security;  /* of the store that the run serves; NULL: an open run */
    int fd;                     /* sealed memfd that workers inherit; 0: none */
    struct secret_giver *giver; /* for processes that closed it, and other shells; NULL: none */
};

/* Chooses the secret: of --secret-file, else of the configuration, else the secret that an outer
 * launcher announced, else that of the launcher whose store --join names, else a random one.
 * errors: ECONFIG (says which option is missing), those of security_open and secret_inherit */
tenrec_status run_secret_open(const struct workers_plan *plan, struct run_secret *ret,
                              tenrec_error *err);
/* Begins to give the secret to processes of this user. The other shell derives the name of the
 * socket from the address of the store; port 0: the run serves none. */
tenrec_status run_secret_give(struct run_secret *s, const char *host, uint16_t port,
                              tenrec_error *err);
void run_secret_close(struct run_secret *s);

#endif
