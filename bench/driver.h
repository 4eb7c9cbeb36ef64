/* SPDX-License-Identifier: Apache-2.0 */
/* driver.h - one benchmark program: what is measured is described by `struct
 * way`, and the driver makes the two processes, repeats, times and prints.
 *
 *     PROGRAM MODE PROGRESS VIA [BYTES,...]
 *
 * prints one line of JSON for each number of bytes. Modes that all know:
 *
 * latency    one call after the other with 64 bytes, answered with 64
 * rate       64 of these in flight
 * bandwidth  BYTES (64 MiB) into a buffer that is used again, answered with 64
 * drop       the same into memory that is new each time and given back
 *
 * Progress: busy (both sides spin), sleep (both block), adaptive. Calls are
 * repeated for a fixed time, after a tenth of it untimed. Calls shorter than
 * two microseconds are timed by the batch, so that the clock does not weigh. */
#ifndef TENREC_BENCH_DRIVER_H
#define TENREC_BENCH_DRIVER_H

#include "pair.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One run, as both processes see it. */
struct trial {
    const char *peer, *mode, *progress, *via;
    bool busy;            /* progress is "busy" */
    size_t size;          /* bytes of a call */
    int fd;               /* a blocking stream to the other process */
    pid_t caller, callee; /* callee: 0 in itself */
    bool killed;          /* the callee, on purpose */
    void *shared;         /* shared_bytes(size) of memory that both see, zeroed */
    void *state;          /* the way's own */
};

/* How one peer does some modes through one of its transports. */
struct way {
    const char *peer, *via;
    const char *modes;                   /* separated by blanks */
    const char *progress;                /* so are these */
    size_t (*shared_bytes)(size_t size); /* may be NULL: none */
    void (*prepare)(struct trial *t);    /* before the fork; may be NULL */
    /* Of the callee: answers until the caller closes; returns the exit status. */
    int (*serve)(struct trial *t);
    /* Of the caller. `call` returns when its answer is there; `flood` makes n
     * calls, PAIR_INFLIGHT at a time, and returns when all are answered. After
     * `close` the callee ends. */
    void (*open)(struct trial *t);
    void (*call)(struct trial *t);
    void (*flood)(struct trial *t, size_t n);
    void (*close)(struct trial *t);
    void (*clean)(struct trial *t);           /* after the callee has ended; may be NULL */
    void (*tell)(struct trial *t, FILE *out); /* further pairs, each after ", "; may be NULL */
    size_t most_calls;                        /* 0: as many as fit into the time */
};

/* main() of a program with these ways. */
int driver_main(int argc, char **argv, const struct way *ways, size_t n);

/* Words that `list` (separated by blanks) has. */
bool driver_lists(const char *list, const char *word);

/* A `close` for callees that end by nothing else. */
void driver_kill(struct trial *t);

/* A short text to the other process, and from it: an address, say. */
void driver_say(const struct trial *t, const void *text, size_t n);
size_t driver_hear(const struct trial *t, void *ret_text, size_t room);

#ifdef __cplusplus
}
#endif

#endif
