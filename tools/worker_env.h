/* SPDX-License-Identifier: Apache-2.0 */
/* worker_env.h - what a worker of `tenrec run` finds in its environment. */
#ifndef TENREC_TOOLS_WORKER_ENV_H
#define TENREC_TOOLS_WORKER_ENV_H

#include "workers.h"

#define RUN_ID_MAX 64

/* Who it is. */
struct worker_who {
    int rank; /* or slot */
    int life; /* in an elastic run; else 0 */
};

/* Where the workers of a run meet. */
struct worker_place {
    const char *host; /* of the store that we serve */
    uint16_t port;
    char run_id[RUN_ID_MAX]; /* tells one run from the next */
};

struct worker_env;

/* The plan must live as long. NULL: out of memory, or too long. */
struct worker_env *worker_env_new(const struct workers_plan *plan, const struct worker_who *who,
                                  const struct worker_place *place);
/* The whole environment, "NAME=value", NULL at the end; borrowed. */
char *const *worker_env_all(const struct worker_env *e);
void worker_env_drop(struct worker_env *e);

/* Differs between two runs, also on two machines. Workers of an elastic run may
 * come from several launchers, so there it is what TENREC_RUN_ID says, or always
 * the same. */
void worker_env_run_id(const struct workers_plan *plan, char ret[RUN_ID_MAX]);

#endif
