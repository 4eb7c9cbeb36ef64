/* SPDX-License-Identifier: Apache-2.0 */
/* store_far.h - a client of the store in a second process. Each order is demanded to succeed. */
#ifndef TENREC_TOOLS_CONFORMANCE_STORE_FAR_H
#define TENREC_TOOLS_CONFORMANCE_STORE_FAR_H

/* Starts the process, before this one opens the store. */
void far_start(void);
void far_end(void);

void far_set(const char *key, const char *value);
/* Demands that the key has that value over there. */
void far_holds(const char *key, const char *value);
/* The same in two steps: between them it may wait for the key. */
void far_holds_begin(const char *key, const char *value);
void far_holds_end(void);

#endif
