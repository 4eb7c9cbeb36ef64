/* SPDX-License-Identifier: Apache-2.0 */
/* workers_run.h - one run of workers.c, between the files that make it up. */
#ifndef TENREC_TOOLS_WORKERS_RUN_H
#define TENREC_TOOLS_WORKERS_RUN_H

#include "stream.h"
#include "worker_env.h"

#include <sys/types.h>

#define NEVER UINT64_MAX

struct worker {
    pid_t pid; /* leads a group; its number stays ours until it is reaped */
    bool running;
    int fd[3]; /* -1 when closed */
    struct stream stream[3];
    struct elastic_slot slot;
};

struct run {
    const struct workers_plan *plan;
    struct worker *worker;
    int started, running; /* of the workers, or slots */
    struct elastic elastic;
    struct worker_place place;
    int signal_fd;
    int signals; /* how many of the user's came */
    int more;    /* slots that SIGUSR1 asks for */
    bool killed;
    int status;       /* what we exit with */
    bool failed;      /* status is decided */
    bool deaf;        /* nobody reads our stdout any more */
    uint64_t kill_at; /* deadline of those that were told to end */
    struct screen screen;
};

/* workers_end.c: signals, and how workers end. */

/* One line of ours on stderr. */
TENREC_PRINTF(2, 3)
void run_say(struct run *r, const char *fmt, ...);
/* Asks those that still run to end, and starts nobody again; run_kill_late does
 * the rest. */
void run_end_all(struct run *r, int sig);
void run_kill_late(struct run *r);
void run_slot_ended(struct run *r, int slot, int status);
void run_read_signals(struct run *r);
/* A descriptor that tells of signals from now on; -1 and errno. */
int run_open_signals(bool elastic);
/* The shorter of two limits, as poll wants it. */
int run_wait_ms(uint64_t a, uint64_t b);

/* workers_out.c: what the workers write. */
void run_write(void *arg, int fd, const char *data, size_t n);
void worker_close_stream(struct worker *w, int which);
void worker_read_stream(struct worker *w, int which);
/* All that is there to be read, then the end of it. */
void worker_hear_out(struct worker *w);

#endif
