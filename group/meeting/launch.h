/* SPDX-License-Identifier: Apache-2.0 */
/* launch.h - how this process was launched, and where its group meets: rank, world size and the
 * store, from the variables that launchers set and from init_method. */
#ifndef TENREC_MEETING_LAUNCH_H
#define TENREC_MEETING_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenrec/error.h>

struct rendezvous;
struct rendezvous_options;

/* Returns the value of an environment variable, or NULL. An empty variable counts as unset, as in a
 * shell's FOO= command. */
const char *launch_variable(const char *name);

struct launch {
    int32_t rank, world;             /* -1: unknown */
    int32_t local_rank, local_world; /* on this host; -1: unknown */
    char source[48];                 /* "torchrun's variables", "Slurm" ... */
    char host[256];                  /* address of the store, or "" */
    uint16_t port;
    char store_source[64]; /* the source of host and port */
    bool agent_store;      /* the launcher serves the store: never serve it */
    char file[256];        /* a file for all ranks of one host; "" */
    char run[128];         /* distinguishes one start from the next; "" if unknown */
};

/* Detects the launcher: TENREC_RANK, torchrun, PMIx, PMI, Slurm, Open MPI, in this order; else rank
 * and world are -1 ("single process"). A given rank >= 0 and world > 0 override all.
 *
 * errors: EINVAL, names the wrong or missing variable */
tenrec_status launch_detect(int32_t rank, int32_t world, struct launch *ret, tenrec_error *err);

/* Fills host and port, or file, for env://: from MASTER_ADDR and MASTER_PORT, else derived under
 * Slurm and on one host.
 *
 * errors: EINVAL, names the variables to set */
tenrec_status launch_find_store(struct launch *launch, tenrec_error *err);

/* Reads a whole decimal number within min..max; the error calls it `name`. */
tenrec_status launch_number(const char *name, const char *text, int64_t min, int64_t max,
                            int64_t *ret, tenrec_error *err);

/* The number at the end of this host's name: a StatefulSet and an Indexed Job count their pods so.
 * errors: EINVAL, names the host */
tenrec_status launch_host_rank(int32_t *ret, tenrec_error *err);

/* Reads a task's step from Slurm's variables. */

/* Returns true if this is a task of a step (srun): the shell of a batch job has Slurm's variables
 * too. */
bool slurm_is_task(void);

/* Tasks of the step on this node, -1 if unknown. */
int32_t slurm_local_tasks(void);

/* Finds the node of rank 0, and a port derived from the job and step (10000..29999, below the
 * kernel's own). Returns false if Slurm's variables do not suffice. */
bool slurm_store(char *ret_host, size_t room, uint16_t *ret_port);

/* First host of a list such as "gpu[03-07,9],login1". Returns false if the list is malformed. */
bool slurm_first_host(const char *list, char *ret, size_t room);

/* The count of node `node` in "4(x2),3"; -1 if malformed. */
int32_t slurm_count_at(const char *text, long node);

#define INIT_RANK_OF_HOST (-2) /* launch_host_rank */

/* The text that names a group's store, parsed. */
struct init_method {
    enum { INIT_ENV, INIT_TCP, INIT_FILE, INIT_MEMORY, INIT_OTHER } kind;
    char *text;          /* owns; between :// and the '?'; of INIT_OTHER with the scheme */
    int32_t rank, world; /* of the query; -1: not in it; or INIT_RANK_OF_HOST */
    const char *host;    /* likewise, of INIT_MEMORY: an address that peers on other hosts reach, or
                            reach this one from; in `text`; NULL: none */
};

/* Reads `text`. ret: init_method_finish it, also after an error. errors: EINVAL, ENOMEM */
tenrec_status init_method_read(const char *text, struct init_method *ret, tenrec_error *err);
void init_method_finish(struct init_method *m);

/* Prefixes an error with `label` and the init_method, and masks a password in it. */
void init_method_blame(const char *label, const char *text, tenrec_error *err);

/* Opens that store; rank 0 serves a TCP store unless the launcher does. Sets r->store, r->server
 * and r->member_serves, and the store's address in r->launch, where a member has its rank and world
 * already. A visitor (r->visitor) serves no store and makes no file.
 *
 * errors: as rendezvous_open; ENOTFOUND (a visitor's file) */
tenrec_status rendezvous_store_open(const struct rendezvous_options *o,
                                    const struct init_method *method, struct rendezvous *r,
                                    uint64_t deadline_ns, tenrec_error *err);

#endif
