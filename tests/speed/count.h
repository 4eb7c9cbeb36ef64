/* SPDX-License-Identifier: Apache-2.0 */
/* count.h - counts the system calls of processes while they do a certain work,
 * by tracing them. What a call costs in time depends on the machine; how many
 * system calls it takes does not. */
#ifndef TESTS_SPEED_COUNT_H
#define TESTS_SPEED_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#define COUNT_ROLES 2
#define COUNT_NUMBERS 1024 /* numbers of system calls are below */

struct count_process {
    uint32_t done[COUNT_NUMBERS];    /* by number: gave something */
    uint32_t refused[COUNT_NUMBERS]; /* came back with an error, EAGAIN say */
};

struct counts {
    struct count_process of[COUNT_ROLES];
};

/* Runs fn(arg) in a child and counts what it and its children do. Returns the
 * child's exit status; -1 when it did not exit, or cannot be traced (errno). */
int count_run(int (*fn)(void *arg), void *arg, struct counts *ret);

/* For the counted processes: count_role gives this process and its threads a role;
 * count_begin and count_end bound the counted time of all. */
void count_role(int role);
void count_begin(void);
void count_end(void);

/* Sums of system calls: sends of bytes or wake-ups; receives; calls that may sleep until
 * there are some; all others. A
 * receive that found nothing counts as `vain`, and a wait that may not sleep as
 * `looks`: a spinning thread makes these by the clock, not by the call. */
struct count_sums {
    uint32_t sends, receives, vain, waits, wakes, looks, others;
};
struct count_sums count_sum(const struct count_process *p);

/* Prints what was counted, for a test that fails. */
void count_print(const struct counts *c);

#endif
