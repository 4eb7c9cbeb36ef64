/* SPDX-License-Identifier: Apache-2.0 */
/* fake_driver.h - a CUDA driver without threads, for a target that plays a peer of a link.
 *
 * Memory of its two devices is memory of the process, so that a sanitizer sees each copy that
 * goes beyond it. What is queued is done later, in order: one operation with each question
 * whether an event has passed. A program that links this has the functions of cuda/driver.c
 * wrapped. */
#ifndef TENREC_TESTS_FUZZ_FAKE_DRIVER_H
#define TENREC_TESTS_FUZZ_FAKE_DRIVER_H

#define FAKE_DEVICES 2
#define FAKE_FOREIGN 5000 /* bytes of an allocation of another process */
#define FAKE_HANDLES 4    /* first bytes of handles that can be opened */

struct fake_driver {
    unsigned fails; /* the call from now on that fails, once; 0: none */
    int live;       /* allocations, events and opened handles */
};
extern struct fake_driver fake_driver;

/* Runs all queued work. */
void fake_driver_run(void);

#endif
