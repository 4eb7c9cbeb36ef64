/* SPDX-License-Identifier: Apache-2.0 */
/* tunable.h - a wrapper of tests whose options change while it runs; debug info shows them, and
 * counts what became of the changes. */
#ifndef TESTS_SUPPORT_TUNABLE_H
#define TESTS_SUPPORT_TUNABLE_H

/* Registers the backend `tunable`:
 *   level   0 to 9, may change; construct_options refuses 7, and prepare 8
 *   words   a list of strings, may change
 *   fixed   a number that may not change */
void tunable_register(void);

#endif
