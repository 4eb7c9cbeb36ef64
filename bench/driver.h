/* SPDX-License-Identifier: Apache-2.0 */
/* driver.h - one benchmark program: `struct way` describes the measured calls; the
 * driver makes the two processes, repeats, times and prints.
 *
 *     PROGRAM MODE PROGRESS VIA [BYTES,...]
 *
 * prints one line of JSON for each number of bytes. Modes of all programs:
 *
 * latency    one call after the other with 64 bytes, answered with 64
 * rate       64 of these in flight
 * bandwidth  BYTES (64 MiB) into a reused buffer, answered with 64
 * drop       the same into new memory each time, freed afterwards
 *
 * Progress: busy (both sides spin), sleep (both block), adaptive. Calls are
 * repeated for a fixed time, after a tenth of it untimed. Calls shorter than
 * two microseconds are timed in batches, so that reading the clock does not count. */
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
    void *state;          /* of the way */
};

/* One peer's implementation of some modes over one transport. */
struct way {
    const char *peer, *via;
    const char *modes;                   /* separated by blanks */
    const char *progress;                /* likewise */
    size_t (*shared_bytes)(size_t size); /* may be NULL: none */
    void (*prepare)(struct trial *t);    /* before the fork; may be NULL */
    /* Callee: answers until the caller closes; returns the exit status. */
    int (*serve)(struct trial *t);
    /* Caller: `call` makes one call and waits for the answer; `flood` makes n calls,
     * PAIR_INFLIGHT at a time, and waits for all; `close` ends the callee. */
    void (*open)(struct trial *t);
    void (*call)(struct trial *t);
    void (*flood)(struct trial *t, size_t n);
    void (*close)(struct trial *t);
    void (*clean)(struct trial *t);           /* after the callee has ended; may be NULL */
    void (*tell)(struct trial *t, FILE *out); /* further pairs, each after ", "; may be NULL */
    size_t most_calls;                        /* 0: no limit but the time */
};

/* main() of a program with these ways. */
int driver_main(int argc, char **argv, const struct way *ways, size_t n);

/* Returns true if `list`, separated by blanks, has the word. */
bool driver_lists(const char *list, const char *word);

/* A `close` that kills the callee. */
void driver_kill(struct trial *t);

/* Sends a short text, such as an address, to the other process, or receives one. */
void driver_say(const struct trial *t, const void *text, size_t n);
size_t driver_hear(const struct trial *t, void *ret_text, size_t room);

#ifdef __cplusplus
}
#endif

#endif
