/* SPDX-License-Identifier: Apache-2.0 */
/* stack.h - where threads of this process stand.
 *
 * A thread is interrupted by THREADS_STACK_SIGNAL, whose handler lists its return addresses. The
 * handler is installed meanwhile only, and only if the program has none for that signal. What the
 * kernel knows of the thread is read in any case. */
#ifndef TENREC_RECORDER_STACK_H
#define TENREC_RECORDER_STACK_H

#include <stddef.h>
#include <stdint.h>

enum { STACK_DEPTH = 24, STACK_FRAME_TEXT = 160 };

enum stack_result {
    STACK_TAKEN,
    STACK_NOT_ASKED, /* the thread was not interrupted */
    STACK_BLOCKED,   /* it blocks the signal */
    STACK_IN_USE,    /* the program handles the signal */
    STACK_LATE,      /* it did not answer in time */
    STACK_NONE,      /* no such thread */
    STACK_ABSENT,    /* the C library has no backtrace() */
};

struct stack {
    uint32_t thread; /* in */
    enum stack_result result;
    int n;
    void *frame[STACK_DEPTH]; /* innermost first */
    char thread_name[16];
    char state[80]; /* "sleeps in futex_wait_queue"; "": unknown */
};

/* Fills the stacks of `n` threads; waits at most some tenths of a second for each. */
void stacks_take(struct stack *s, size_t n);
/* Reads only what the kernel knows. */
void stacks_look(struct stack *s, size_t n);

/* Why there are no frames, one phrase. */
const char *stack_result_text(enum stack_result r);

/* "function+0x1f (libtenrec.so.1)" */
const char *stack_frame_text(const struct stack *s, int i, char buf[static STACK_FRAME_TEXT]);

#endif
