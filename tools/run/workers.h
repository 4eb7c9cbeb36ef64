/* SPDX-License-Identifier: Apache-2.0 */
/* workers.h - starts, watches and ends a group of local processes. */
#ifndef TENREC_TOOLS_WORKERS_H
#define TENREC_TOOLS_WORKERS_H

#include "run/elastic.h"
#include "tool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
