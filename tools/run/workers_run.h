/* SPDX-License-Identifier: Apache-2.0 */
/* workers_run.h - one run; private to workers*.c. */
#ifndef TENREC_TOOLS_WORKERS_RUN_H
#define TENREC_TOOLS_WORKERS_RUN_H

#include "run/stream.h"
#include "run/worker_env.h"
#include "run/workers.h"

#include <poll.h>
#include <sys/types.h>

struct worker {
    pid_t pid; /* leads a process group; valid until the worker is reaped */
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
    struct worker_store store;
    struct run_secret secret;
    int signal_fd;
    int signals; /* number of signals from the user */
    int more;    /* slots to add for SIGUSR1 */
    bool killed;
    int status;       /* exit status */
    bool failed;      /* status is final */
    bool deaf;        /* stdout cannot be written any more */
    uint64_t kill_at; /* deadline after SIGTERM; CLOCK_NEVER: not sent */
    struct screen screen;
};

#define RUN_OWN_MAX 2 /* descriptors of the run itself */

/* workers.c: lists the descriptors of the run itself for poll; returns how many. */
int run_watch_own(const struct run *r, struct pollfd *p);
/* Handles what they report; blocks never. */
void run_serve_own(struct run *r);

/* workers_end.c: signals, and how workers end. */

/* Prints one line on stderr. */
TENREC_PRINTF(2, 3)
void run_say(struct run *r, const char *fmt, ...);
/* Signals all running workers to end, and cancels restarts; run_kill_late kills them
 * at the deadline. */
void run_end_all(struct run *r, int sig);
void run_kill_late(struct run *r);
void run_slot_ended(struct run *r, int slot, int status);
void run_read_signals(struct run *r);
/* Opens a signalfd; returns -1 and sets errno on failure. */
int run_open_signals(bool elastic);

/* workers_out.c: the output of the workers. */
void run_write(void *arg, int fd, const char *data, size_t n);
void worker_close_stream(struct worker *w, int which);
void worker_read_stream(struct worker *w, int which);
/* Drains and closes the streams of a former life. A process that holds its pipes open
 * is not waited for. */
void worker_hear_out(struct worker *w);

#endif
