/* SPDX-License-Identifier: Apache-2.0 */
/* launch.h - who started this process: rank, world size and where to meet, out
 * of the environment that launchers set. */
#ifndef TENREC_GROUP_LAUNCH_H
#define TENREC_GROUP_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <tenrec/error.h>

/* The value of an environment variable, NULL when unset: secure_getenv, or a test's. */
typedef const char *launch_lookup_fn(void *arg, const char *name);

struct launch {
    int32_t rank, world;             /* -1: nobody says */
    int32_t local_rank, local_world; /* on this host; -1: nobody says */
    char source[48];                 /* "torchrun's variables", "Slurm" ... */
    char host[256];                  /* where the store is or shall be; "" */
    uint16_t port;
    char place[64];   /* where host and port came from */
    bool agent_store; /* the store is there already: never serve */
    char file[256];   /* a file for all ranks of one host; "" */
    char run[128];    /* of the launcher: tells one start from the next; "" */
};

/* Looks who launched this process: TENREC_RANK, torchrun, PMIx, PMI, Slurm,
 * Open MPI, in this order; else rank and world are -1 ("single process").
 * A rank >= 0 and a world > 0 that are given win over all.
 *
 * errors: EINVAL names the variable that is wrong or missing */
tenrec_status launch_detect(launch_lookup_fn *lookup, void *arg, int32_t rank, int32_t world,
                            struct launch *ret, tenrec_error *err);

/* Fills host and port, or file, for env://: MASTER_ADDR and MASTER_PORT, else
 * what can be derived under Slurm and on one host.
 *
 * errors: EINVAL says which variables to set */
tenrec_status launch_find_place(launch_lookup_fn *lookup, void *arg, struct launch *launch,
                                tenrec_error *err);

/* A whole decimal number within min..max; `what` names it in the error. */
tenrec_status launch_number(const char *what, const char *text, int64_t min, int64_t max,
                            int64_t *ret, tenrec_error *err);

#endif
