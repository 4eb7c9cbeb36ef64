/* SPDX-License-Identifier: Apache-2.0 */
/* worker_env.h - the environment of a worker of `tenrec run`. */
#ifndef TENREC_TOOLS_WORKER_ENV_H
#define TENREC_TOOLS_WORKER_ENV_H

#include "run/workers.h"

#define RUN_ID_MAX 64

/* The identity of a worker. */
struct worker_id {
    int rank; /* or slot */
    int life; /* number of its life in an elastic run; else 0 */
};

/* The store of a run. */
struct worker_store {
    const char *host; /* of the store that this process serves */
    uint16_t port;
    char run_id[RUN_ID_MAX]; /* distinguishes runs */
    int secret_fd;           /* inherited by the workers; 0: no secret */
    const char *secret_socket;
};

struct worker_env;

/* Returns NULL when out of memory, or when the
 * variables are too long. */
struct worker_env *worker_env_new(const struct workers_plan *plan, const struct worker_id *id,
                                  const struct worker_store *store);
/* The whole environment, "NAME=value", NULL at the end; borrowed. */
char *const *worker_env_all(const struct worker_env *e);
void worker_env_drop(struct worker_env *e);

/* Draws an id that differs between runs, also of two machines. Workers of an elastic
 * run may have several launchers, so their id is that of TENREC_RUN_ID, or a
 * constant. */
void worker_env_run_id(const struct workers_plan *plan, char ret[RUN_ID_MAX]);

#endif
