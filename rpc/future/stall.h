/* SPDX-License-Identifier: Apache-2.0 */
/* stall.h - threads whose tasks block outside of Tenrec, in a system call say: they use no CPU. The
 * pool's lock guards all. */
#ifndef TENREC_FUTURE_STALL_H
#define TENREC_FUTURE_STALL_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define STALL_NS 3000000u /* between the two readings of the clocks */

/* On a thread's stack. */
struct stall_thread {
    struct stall_thread *next, **prev;
    clockid_t clock;
    uint64_t used_ns; /* of CPU, at stall_mark */
    bool runs;        /* a task, and is in no Tenrec wait */
    bool stalled;
};

struct stalls {
    struct stall_thread *first;
    unsigned n; /* stalled */
};

/* The calling thread. */
void stall_add(struct stalls *s, struct stall_thread *t);
void stall_remove(struct stalls *s, struct stall_thread *t);

/* Notes whether `t` runs a task. It is not stalled from now on. */
void stall_set(struct stalls *s, struct stall_thread *t, bool runs);

/* Reads the clocks of the threads that run. */
void stall_mark(struct stalls *s);

/* STALL_NS later: those that run are stalled if none has used CPU, up to `max` in all. A thread
 * that uses CPU, such as the holder of a lock of the program, may be what the others wait for. */
void stall_find(struct stalls *s, unsigned max);

#endif
