/* SPDX-License-Identifier: Apache-2.0 */
/* workers_run.h - one run; private to workers*.c. */
#ifndef TENREC_TOOLS_WORKERS_RUN_H
#define TENREC_TOOLS_WORKERS_RUN_H

#include "group/store/bytes.h"
#include "run/workers.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <tenrec/error.h>

/* stream.c: the output of several workers on one screen or in one file.
 *
 * A stream collects the output of one worker to stdout or stderr and prints it line
 * by line with a prefix, so that lines of different workers never mix. On a
 * terminal a live stream also shows its unfinished line as the last line of the
 * screen: a progress bar (text between carriage returns) keeps moving while the
 * lines of other workers scroll above it. */

/* The output of all streams of a run. */
struct screen {
    /* Writes all bytes to `fd`, or drops the rest after an error. */
    void (*write)(void *arg, int fd, const char *data, size_t n);
    void *arg;
    int live_fd;       /* shows the unfinished line */
    bool terminal[3];  /* by file descriptor, 1 and 2 */
    const char *shown; /* the unfinished line, borrowed from its stream */
    size_t shown_len;
};

struct stream {
    struct screen *screen;
    int fd; /* 1 or 2 */
    bool live;
    char prefix[16];   /* "" for none */
    struct bytes line; /* begins with the prefix; failed: the rest of the line is dropped */
    bool returned;     /* live: the next text overwrites the line */
};

/* Prints whole lines, above the unfinished line. */
void screen_print(struct screen *sc, int fd, const char *text, size_t n);

/* `prefix` is "[3] " or "". */
void stream_init(struct stream *s, struct screen *screen, int fd, const char *prefix, bool live);

void stream_feed(struct stream *s, const char *data, size_t n);

/* Prints the unfinished line, if any, and frees the buffer. */
void stream_finish(struct stream *s);

/* worker_env.c: the environment of a worker of `tenrec run`. */

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
    int host_fd;             /* likewise; host_copy.h; 0: none */
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

/* spawn.c: starts one process of a group. */

struct spawn {
    char *const *argv; /* argv[0] is searched in PATH */
    char *const *env;  /* the whole environment, "NAME=value", NULL at the end */
    bool terminal;     /* stdout is a terminal, as wide as this process's */
    int narrower;      /* minus this many columns */
};

struct spawned {
    pid_t pid; /* leads a process group of its own */
    int fd[3]; /* [1], [2]: read ends of its stdout and stderr; [0] is unused */
};

/* Starts the process; stdin is /dev/null. It is killed when the calling thread ends.
 * errors: ENOTFOUND (no such program), EOS (cannot be executed, no process). */
tenrec_status spawn(const struct spawn *what, struct spawned *ret, tenrec_error *err);

/* Returns a copy of the environment in which the `n` given "NAME=value" texts are
 * set; "NAME" alone removes the variable. Borrows the texts; the caller owns the
 * array. NULL when out of memory. */
char **spawn_environment(char *const *set, size_t n);

/* Names of signals; not every C library has sigabbrev_np. */

enum { SIGNAL_NAME_MAX = 24 };

/* Writes "SIGTERM", or "signal 40" for one without a name, and returns `buf`. */
const char *signal_name(int sig, char buf[SIGNAL_NAME_MAX]);

#endif
