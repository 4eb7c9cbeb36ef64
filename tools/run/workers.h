/* SPDX-License-Identifier: Apache-2.0 */
/* workers.h - starts, watches and ends a group of local processes, with their secret and their
 * traces. */
#ifndef TENREC_TOOLS_WORKERS_H
#define TENREC_TOOLS_WORKERS_H

#include "security/proof/security.h"
#include "security/secret/secret_handover.h"
#include "tool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* elastic.c: decides when a failed worker of an elastic run is restarted, and when
 * the run is over. Pure rules: handles no process. */

struct elastic_plan {
    int min, max;     /* of slots; max 0: the run is not elastic */
    int restarts;     /* of each slot */
    const char *join; /* URL of an existing store; NULL: the run serves one */
};

/* One slot: a worker and its restarts. */
struct elastic_slot {
    int life;            /* number of the worker's life, from 0 */
    bool done;           /* the worker exited with 0 */
    uint64_t started_ns; /* start of the present life */
    uint64_t again_ns;   /* start of the next life; 0: no restart is due */
    unsigned in_a_row;   /* consecutive short lives */
};

struct elastic {
    const struct elastic_plan *plan;
    int done, waiting, lost; /* slots */
};

/* The consequence of a failure. */
enum elastic_next {
    ELASTIC_AGAIN,  /* restart at slot->again_ns */
    ELASTIC_GO_ON,  /* the slot is lost, the others continue */
    ELASTIC_IS_OVER /* too few slots are left */
};

void elastic_ended_well(struct elastic *e, struct elastic_slot *s);
/* running   number of workers that run now */
enum elastic_next elastic_failed(struct elastic *e, struct elastic_slot *s, int running,
                                 uint64_t now_ns);
/* Call before the slot's next life starts. */
void elastic_again(struct elastic *e, struct elastic_slot *s);

struct workers_plan {
    const struct tool *tool; /* the command, for its messages */
    char *const *argv;
    const char *config;      /* absolute path for TENREC_CONFIG; NULL: leave it as it is */
    const char *set;         /* another "NAME=value" for all workers; or NULL */
    int n;                   /* number of workers */
    uint64_t grace_ms;       /* from SIGTERM to SIGKILL */
    bool prefix;             /* "[rank] " before each line */
    bool verbose;            /* print the URL of the store */
    const char *secret_file; /* of the group secret; NULL: that of the configuration, or another */
    bool insecure;           /* no group secret */
    bool keep_going;         /* a failed worker does not end the others */
    struct elastic_plan elastic;
    const char *serve_at; /* address of the store that is served; NULL: 127.0.0.1 */
    uint16_t serve_port;  /* 0: any */
};

/* Serves a store, runs the workers until all have ended and returns the exit status
 * of the command: 0, or that of the worker that failed first (128 + the signal that
 * killed it); for an elastic run that of the worker whose failure ended the run. */
int workers_run(const struct workers_plan *plan);

/* The group secret of a run: its choice, and its way to the workers. */

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

/* The traces of several workers of one machine, joined. */

/* A folder into which each worker writes "<rank>.json". */
struct parts {
    const char *path; /* of the joined trace; borrowed */
    char *folder;
    char *setting; /* "NAME=value" for the environment of the workers */
};

/* Makes the folder, and checks that `path` can be written. Returns TOOL_OK, or
 * after a message an exit status. */
int parts_open(const struct tool *self, const char *path, struct parts *ret);

/* Joins the traces of `n` workers, removes the folder, and reports the workers
 * without a trace: a failure unless `some_missing`. Returns TOOL_OK or an exit
 * status. */
int parts_join(const struct tool *self, struct parts *p, int n, bool some_missing);

#endif
