/* SPDX-License-Identifier: Apache-2.0 */
/* workers.h - a group of local processes: started, watched and ended together.
 */
#ifndef TENREC_TOOLS_WORKERS_H
#define TENREC_TOOLS_WORKERS_H

#include "elastic.h"
#include "tool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct workers_plan {
    const struct tool *tool; /* who speaks in messages */
    char *const *argv;
    const char *config; /* absolute path for TENREC_CONFIG; NULL: as it is */
    char *const *set;   /* more "NAME=value" for all of them */
    size_t n_set;
    int n;             /* how many workers */
    uint64_t grace_ms; /* from SIGTERM to SIGKILL */
    bool prefix;       /* "[rank] " before each line */
    bool verbose;      /* say where the store is */
    bool keep_going;   /* when one fails the others go on */
    struct elastic_plan elastic;
    const char *serve_at; /* address of the store that is served; NULL: 127.0.0.1 */
    uint16_t serve_port;  /* 0: any */
};

/* Serves a store for them, runs them to their end and returns the exit status
 * of the command: 0, or that of the worker that failed first (128 + the signal
 * that killed it); of an elastic run that of the one whose failure ended it. */
int workers_run(const struct workers_plan *plan);

#endif
