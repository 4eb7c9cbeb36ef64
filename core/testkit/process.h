/* SPDX-License-Identifier: Apache-2.0 */
/* process.h - members that are processes, and the store that serves them. */
#ifndef TENREC_TESTKIT_PROCESS_H
#define TENREC_TESTKIT_PROCESS_H

#include "testkit/member.h"

/* Starts the member; what it prints goes to a file in the group's folder.
 *
 * errors   EOS
 */
tenrec_status process_start(struct member *m, tenrec_error *err);

/* True once its process has ended; then m->exit says how. Never blocks. */
bool process_ended(struct member *m);

/* "exited with status 3", "was killed by signal 11 (Segmentation fault)". */
void process_how(const struct member *m, char *ret, size_t room);

/* Serves a TCP store in a process of its own until that is ended by
 * process_end_store; fills in s->store.
 *
 * ret_pid  its process
 * errors   EOS
 */
tenrec_status process_serve_store(struct setting *s, int *ret_pid, tenrec_error *err);
void process_end_store(int pid);

/* The last bytes that the member printed, at most room - 1. */
void process_output(const struct member *m, char *ret, size_t room);

#endif
